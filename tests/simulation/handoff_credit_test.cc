#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

constexpr int kPrompt = 96;
constexpr int kTokens = 6;
// One such prompt with a block to grow into, and three more.
constexpr int kBlocks = 10;

// Workers whose handoffs hold blocks that others need to compute what is to be
// handed off.
class HandoffCreditTest : public HandoffFixture {
 protected:
  struct Pair {
    GenerateRequest request;
    SimWorker* prefill = nullptr;
    SimWorker* decode = nullptr;
    std::vector<std::unique_ptr<Leg>> legs;  // prefill and decode, by attempt
    Leg& p() { return *legs[legs.size() - 2]; }
    Leg& d() { return *legs.back(); }
    int attempts() const { return static_cast<int>(legs.size()) / 2; }
    bool finished() { return p().ended && d().ended && d().ended->ok(); }
  };

  void StartAttempt(Pair& pair) {
    std::vector<TokenId> has;
    for (const auto& leg : pair.legs) {
      has.insert(has.end(), leg->tokens.begin(), leg->tokens.end());
    }
    pair.legs.push_back(std::make_unique<Leg>());
    pair.legs.push_back(std::make_unique<Leg>());
    StartPair(pair.request, *pair.prefill, *pair.decode, pair.attempts(), has,
              pair.p(), pair.d());
  }

  static std::vector<TokenId> Tokens(const Pair& pair) {
    std::vector<TokenId> tokens;
    for (const auto& leg : pair.legs) {
      tokens.insert(tokens.end(), leg->tokens.begin(), leg->tokens.end());
    }
    return tokens;
  }

  // Each worker is prefill worker of one request, with one of `ids`, and the
  // decode worker of the one before.
  void FinishCircle(const std::vector<uint64_t>& ids,
                    SimTransportOptions transport) {
    SimWorkerOptions options;
    options.blocks = kBlocks;
    options.transports = {transport};
    const size_t count = ids.size();
    std::vector<std::unique_ptr<SimWorker>> workers;
    std::vector<Pair> pairs(count);
    for (size_t i = 0; i < count; ++i) {
      workers.push_back(
          Make(absl::StrCat("w", i), ++lives_ + 100, {true, true}, options));
    }
    for (size_t i = 0; i < count; ++i) {
      pairs[i].request = Request(ids[i], kPrompt, kTokens);
      pairs[i].prefill = workers[i].get();
      pairs[i].decode = workers[(i + 1) % count].get();
      StartAttempt(pairs[i]);
    }
    auto finished = [&] {
      bool all = true;
      for (auto& worker : workers) worker->Settle();
      for (Pair& pair : pairs) {
        if (!pair.p().ended || !pair.d().ended) {
          all = false;
        } else if (!pair.d().ended->ok()) {
          EXPECT_EQ(ErrorInfoOf(*pair.d().ended).reason,
                    ErrorReason::kQueueFull);
          StartAttempt(pair);
          all = false;
        }
      }
      return all;
    };
    ASSERT_TRUE(RunUntil(finished, absl::Seconds(30)));
    const uint64_t first = *std::min_element(ids.begin(), ids.end());
    int attempts = 0;
    for (Pair& pair : pairs) {
      EXPECT_EQ(Tokens(pair), SimModel::Generate(pair.request.prompt, kTokens,
                                                 pair.request.id.value()));
      attempts += pair.attempts();
      // Nobody takes anything from the earliest.
      if (pair.request.id.value() == first) {
        EXPECT_EQ(pair.attempts(), 1);
      }
    }
    // It was a circle.
    EXPECT_GT(attempts, static_cast<int>(count));
    for (auto& worker : workers) {
      worker->Settle();
      RunUntil([&] { return worker->core().idle(); }, absl::Seconds(20));
      EXPECT_EQ(worker->CheckBlocks(), absl::OkStatus());
    }
  }

  // Prefill's one step for a prompt takes so long, on the way to a decode
  // worker without room for two.
  void StartSlowPrefill(absl::Duration step) {
    SimWorkerOptions options;
    options.backend.step_cost = step;
    prefill_.reset();
    decode_.reset();
    prefill_ = Make("p", 11, {true, false}, options);
    decode_ = Make("d", 12, {true, true}, Small());
  }

  static SimWorkerOptions Small() {
    SimWorkerOptions options;
    options.blocks = kBlocks;
    return options;
  }

  uint64_t lives_ = 0;
};

TEST_F(HandoffCreditTest, CirclesOfWorkersMoveOn) {
  SimTransportOptions unchecked;
  unchecked.receiver_validates = false;
  for (const SimTransportOptions& transport :
       {SimTransportOptions(), unchecked}) {
    FinishCircle({1, 2}, transport);
    FinishCircle({2, 1}, transport);
    std::vector<uint64_t> ids = {1, 2, 3};
    do {
      FinishCircle(ids, transport);
    } while (std::next_permutation(ids.begin(), ids.end()));
    FinishCircle({3, 1, 5, 2, 4}, transport);
    FinishCircle({7, 6, 5, 4, 3, 2, 1}, transport);
  }
}

TEST_F(HandoffCreditTest, AnEarlierRequestTakesALaterOnesCredit) {
  StartSlowPrefill(absl::Seconds(8));
  const GenerateRequest later = Request(9, kPrompt, kTokens);
  const GenerateRequest earlier = Request(5, kPrompt, kTokens);
  Leg p, d, alone;
  StartPair(later, p, d);
  ASSERT_TRUE(RunUntil([&] { return d.accepted; }, absl::Seconds(1)));
  const Instant begun = clock_.Now();
  StartAlone(earlier, *decode_, 1, {}, alone);
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  // Not before it had waited.
  EXPECT_GE(clock_.Now() - begun, HandoffOptions().starvation_timeout);
  EXPECT_LT(clock_.Now() - begun, absl::Seconds(2));
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kQueueFull);
  EXPECT_EQ(ErrorInfoOf(*d.ended).retry_after, absl::Seconds(1));
  ASSERT_TRUE(
      RunUntil([&] { return alone.ended.has_value(); }, absl::Seconds(1)));
  EXPECT_EQ(alone.tokens, SimModel::Generate(earlier.prompt, kTokens, 5));
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  EXPECT_FALSE(p.ended->ok());
}

TEST_F(HandoffCreditTest, ALaterRequestWaitsForAnEarlierOnesCredit) {
  StartSlowPrefill(absl::Seconds(4));
  const GenerateRequest earlier = Request(5, kPrompt, kTokens);
  const GenerateRequest later = Request(9, kPrompt, kTokens);
  Leg p, d, alone;
  StartPair(earlier, p, d);
  ASSERT_TRUE(RunUntil([&] { return d.accepted; }, absl::Seconds(1)));
  StartAlone(later, *decode_, 1, {}, alone);
  ASSERT_TRUE(RunUntil([&] { return alone.ended && p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok() && d.ended->ok()) << *p.ended << *d.ended;
  EXPECT_EQ(alone.tokens, SimModel::Generate(later.prompt, kTokens, 9));
}

TEST_F(HandoffCreditTest, ACreditThatIsSoonUsedIsNotTaken) {
  StartSlowPrefill(absl::Milliseconds(700));
  const GenerateRequest later = Request(9, kPrompt, kTokens);
  const GenerateRequest earlier = Request(5, kPrompt, kTokens);
  Leg p, d, alone;
  StartPair(later, p, d);
  ASSERT_TRUE(RunUntil([&] { return d.accepted; }, absl::Seconds(1)));
  StartAlone(earlier, *decode_, 1, {}, alone);
  ASSERT_TRUE(RunUntil([&] { return alone.ended && p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok() && d.ended->ok()) << *p.ended << *d.ended;
}

TEST_F(HandoffCreditTest, NoCreditIsGrantedWhileTheEngineCannotGoOn) {
  StartSlowPrefill(absl::Seconds(4));
  Leg p, d, alone, p2, d2;
  StartPair(Request(5, kPrompt, kTokens), p, d);
  ASSERT_TRUE(RunUntil([&] { return d.accepted; }, absl::Seconds(1)));
  StartAlone(Request(9, kPrompt, kTokens), *decode_, 1, {}, alone);
  // There is room for this one all the time.
  StartPair(Request(3, 10, kTokens), p2, d2);
  bool overtaken = false;
  ASSERT_TRUE(RunUntil([&] {
    overtaken |= d2.accepted && p.tokens.empty();
    return alone.ended && d.ended && d2.ended;
  }));
  EXPECT_FALSE(overtaken);
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
}

// The block that its first own token goes into, if it makes one.
TEST_F(HandoffCreditTest, ACreditHasRoomToGrowIfMoreIsToCome) {
  for (int tokens : {1, 2}) {
    StartSlowPrefill(absl::Seconds(1));
    Leg p, d;
    StartPair(Request(1, kPrompt, tokens), p, d);
    ASSERT_TRUE(RunUntil([&] { return d.accepted; }));
    const BlockCounts counts = decode_->core().pool().counts();
    EXPECT_EQ(counts.in_transfer, kPrompt / kBlockTokens);
    EXPECT_EQ(counts.active, tokens - 1);
    ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  }
}

}  // namespace
}  // namespace penstock
