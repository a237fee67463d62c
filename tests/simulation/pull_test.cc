// KV that a worker pulls from another one's pool, page by page.

#include <memory>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

constexpr int kPrompt = 400;
// Of the prompt, in whole blocks before its last token.
constexpr int kReusable = 24 * kBlockTokens;

class PullTest : public HandoffFixture {
 protected:
  void SetUp() override {
    HandoffFixture::SetUp();
    other_ = Make("o", 3, {false, true}, {});
  }

  // The same answer to the first `prompt` tokens, from whoever computes it.
  GenerateRequest Same(uint64_t id, int prompt) {
    GenerateRequest request = Request(1, prompt, 4);
    request.id = RequestId(id);
    return request;
  }

  // What the decode worker answers by itself, and has in its pool then.
  std::vector<TokenId> Computed(int prompt) {
    Leg leg;
    StartAlone(Same(1, prompt), *decode_, 1, {}, leg);
    EXPECT_TRUE(RunUntil([&] { return leg.ended.has_value(); }));
    EXPECT_TRUE(leg.ended->ok()) << *leg.ended;
    return leg.tokens;
  }

  // What the other worker answers that is told where the prompt is.
  Leg Pulled(uint64_t id) {
    LegRequest request = LegFor(Same(id, kPrompt), *other_, "");
    request.source = {"d", "d"};
    request.source_tokens = kPrompt;
    Leg leg;
    other_->core().StartLeg(LegKind::kDecode, std::move(request), &leg);
    other_->Settle();
    EXPECT_TRUE(RunUntil([&] { return leg.ended.has_value(); }));
    EXPECT_TRUE(leg.ended->ok()) << *leg.ended;
    return leg;
  }

  int64_t rows() const { return other_->backend().rows_computed(); }
};

TEST_F(PullTest, BringsWhatAnotherComputed) {
  const std::vector<TokenId> right = Computed(kPrompt);
  const Leg leg = Pulled(2);
  EXPECT_EQ(leg.tokens, right);
  EXPECT_EQ(leg.last->usage.cached_tokens, kReusable);
  // And three of the answer's.
  EXPECT_EQ(rows(), kPrompt - kReusable + 3);
  ExpectClean(*decode_);
  ExpectClean(*other_);
}

TEST_F(PullTest, ComputesWhatTheOwnerHasNoMore) {
  Computed(200);
  const Leg leg = Pulled(2);
  EXPECT_GE(leg.last->usage.cached_tokens, 11 * kBlockTokens);
  EXPECT_LE(leg.last->usage.cached_tokens, 200);
  EXPECT_EQ(rows(), kPrompt - leg.last->usage.cached_tokens + 3);
  EXPECT_EQ(leg.tokens, Computed(kPrompt));
  ExpectClean(*decode_);
  ExpectClean(*other_);
}

TEST_F(PullTest, ComputesWhatNobodySends) {
  const std::vector<TokenId> right = Computed(kPrompt);
  network_.filter = [](const WorkerKey&, const WorkerKey&,
                       const HandoffMessage& message) {
    return !std::holds_alternative<PullDone>(message);
  };
  const Leg leg = Pulled(2);
  EXPECT_EQ(leg.tokens, right);
  EXPECT_EQ(leg.last->usage.cached_tokens, 0);
  EXPECT_EQ(rows(), kPrompt + 3);
  ExpectClean(*decode_);
  ExpectClean(*other_);
}

TEST_F(PullTest, ComputesWhatAWorkerHadThatIsGone) {
  const std::vector<TokenId> right = Computed(kPrompt);
  decode_.reset();
  const Leg leg = Pulled(2);
  EXPECT_EQ(leg.tokens, right);
  EXPECT_EQ(rows(), kPrompt + 3);
  ExpectClean(*other_);
}

TEST_F(PullTest, ComputesWhatAWorkerHadThatGoesMeanwhile) {
  const std::vector<TokenId> right = Computed(kPrompt);
  bool asked = false;
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    asked |= std::holds_alternative<PullAsk>(message);
    return true;
  };
  LegRequest request = LegFor(Same(2, kPrompt), *other_, "");
  request.source = {"d", "d"};
  request.source_tokens = kPrompt;
  Leg leg;
  other_->core().StartLeg(LegKind::kDecode, std::move(request), &leg);
  other_->Settle();
  ASSERT_TRUE(RunUntil([&] { return asked; }));
  decode_.reset();
  ASSERT_TRUE(RunUntil([&] { return leg.ended.has_value(); }));
  EXPECT_EQ(leg.tokens, right);
  ExpectClean(*other_);
}

// A page that is being pulled is not given away.
TEST_F(PullTest, PinsWhatIsPulled) {
  Computed(kPrompt);
  int pinned = 0;
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    if (std::holds_alternative<PullDone>(message)) {
      pinned = std::max(pinned, decode_->core().pool().counts().in_transfer);
    }
    return true;
  };
  Pulled(2);
  EXPECT_GT(pinned, 0);
  ExpectClean(*decode_);
}

}  // namespace
}  // namespace penstock
