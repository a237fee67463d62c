#include "common/engine/resume.h"

#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/model/text/small_vocabulary.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class ResumeTest : public testing::Test {
 protected:
  ResumeTest() {
    leg_.request.prompt = {65, 66, 67};
    leg_.request.stop.max_tokens = 10;
    limits_.vocab_size = 70;
    limits_.context_length = 8;
  }

  std::unique_ptr<Sequence> Start() {
    return std::make_unique<Sequence>(leg_.request, BlockHash(9),
                                      tokenizer_.get(), 64);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = *CreateTokenizer(SmallVocabulary());
  LegRequest leg_;
  RequestLimits limits_;
};

// Penalties look back at the tokens, mirostat at where it had come.
TEST_F(ResumeTest, WhatDrawsLookBackAtIsAsIfTheLegHadMadeIt) {
  leg_.request.sampling.penalties.frequency = 0.5f;
  leg_.request.sampling.mirostat.on = true;
  auto whole = Start(), resumed = Start();
  leg_.delivered.emplace_back();
  for (TokenId token : {70, 71, 70}) {
    TokenDelivery made = whole->Append({token, {}, token * 0.25f});
    EXPECT_EQ(made.token.mirostat_mu, token * 0.25f);
    leg_.delivered[0].push_back({made.token.id, made.token.mirostat_mu});
  }
  auto made = Replay(DeliveredOf(leg_, 0), *resumed);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->size(), 3u);
  EXPECT_EQ(resumed->tokens(), whole->tokens());
  const SampleRow want = whole->Draws(0)[0], got = resumed->Draws(0)[0];
  EXPECT_EQ(got.position, want.position);
  EXPECT_EQ(got.history->tokens, want.history->tokens);
  EXPECT_EQ(got.history->prompt_tokens, 3);
  EXPECT_EQ(got.history->mirostat_mu, 70 * 0.25f);
}

TEST_F(ResumeTest, OtherSamplersShowNoMirostatState) {
  EXPECT_EQ(Start()->Append({70, {}, 3.0f}).token.mirostat_mu, 0);
}

TEST_F(ResumeTest, NothingGoesOnAfterTheEnd) {
  leg_.request.stop.stop_ids = {70};
  leg_.delivered = {{{70, 0}}};
  auto ended = Replay(DeliveredOf(leg_, 0), *Start());
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->back().finish, FinishReason::kStop);
  leg_.delivered[0].push_back({71, 0});
  EXPECT_EQ(Replay(DeliveredOf(leg_, 0), *Start()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ResumeTest, BoundsAreChecked) {
  auto code = [&] { return CheckDelivered(leg_, limits_).code(); };
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  // Three of the prompt and five more fill the context.
  leg_.delivered = {std::vector<DeliveredToken>(5, {1, 0})};
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  leg_.delivered[0].push_back({1, 0});
  EXPECT_EQ(code(), refused);
  leg_.delivered = {{{70, 0}}};
  EXPECT_EQ(code(), refused);
  leg_.delivered = {{{-1, 0}}};
  EXPECT_EQ(code(), refused);
  leg_.delivered = {{{1, std::numeric_limits<float>::quiet_NaN()}}};
  EXPECT_EQ(code(), refused);
  leg_.delivered = {{}, {}};
  EXPECT_EQ(code(), refused) << "one answer was asked for";
  leg_.request.n = 2;
  leg_.delivered = {{}, {{1, 0}}};
  EXPECT_EQ(code(), absl::StatusCode::kOk);
  leg_.partner.worker = "p";
  EXPECT_EQ(code(), refused) << "a handoff brings one answer";
  leg_.partner.worker = "";
  leg_.request.best_of = 2;
  EXPECT_EQ(code(), refused) << "compared at the end";
}

TEST_F(ResumeTest, WhatWasComputedCanBeKept) {
  EXPECT_FALSE(KeepableOf(nullptr).has_value());
  EXPECT_FALSE(KeepableOf(Start()).has_value());
  BlockPool pool(4);
  leg_.request.prompt.assign(40, 65);
  for (int computed : {1, 16, 17, 40}) {
    auto sequence = Start();
    sequence->blocks = *pool.TryAllocate(3);
    sequence->computed = computed;
    std::optional<KeptKv::Prefix> prefix = KeepableOf(std::move(sequence));
    ASSERT_TRUE(prefix.has_value()) << computed;
    EXPECT_EQ(prefix->computed, computed);
    EXPECT_EQ(prefix->tokens.size(), static_cast<size_t>(computed));
    EXPECT_EQ(pool.counts().active, (computed + 15) / 16) << computed;
  }
  EXPECT_EQ(pool.free(), 4);
}

TEST_F(ResumeTest, NothingIsKeptForAClientThatIsGone) {
  using Code = absl::StatusCode;
  for (Code code : {Code::kOk, Code::kCancelled, Code::kDeadlineExceeded,
                    Code::kInvalidArgument}) {
    EXPECT_FALSE(WorthKeeping(code)) << absl::Status(code, "");
  }
  for (Code code : {Code::kUnavailable, Code::kInternal, Code::kAborted,
                    Code::kResourceExhausted}) {
    EXPECT_TRUE(WorthKeeping(code)) << absl::Status(code, "");
  }
}

// The next leg computes what is missing, and the last row once more, since its
// logits are wanted.
TEST_F(ResumeTest, WhatIsKeptIsTakenUpOnce) {
  leg_.request.id = RequestId(1);
  leg_.request.prompt.assign(40, 65);
  ManualClock clock;
  Timers timers;
  HashSecret secret{"resume"};
  BlockHasher hasher{secret};
  CacheEventLog log;
  BlockPool pool(4);
  PrefixCache cache(&pool, &hasher, &log);
  KeptKv kept(absl::Seconds(10), &clock, &timers);
  WorkerContext context;
  context.cache = &cache;
  context.kept = &kept;
  const std::pair<int, int> kKeptAndUsed[] = {
      {1, 1}, {16, 16}, {20, 20}, {39, 39}, {40, 39}};
  for (const auto& [tokens, used] : kKeptAndUsed) {
    kept.Keep(RequestId(1), {{leg_.request.prompt.begin(),
                              leg_.request.prompt.begin() + tokens},
                             *pool.TryAllocate((tokens + 15) / 16),
                             tokens});
    auto sequence = Start();
    AdoptKept(context, *sequence);
    EXPECT_EQ(sequence->computed, used);
    EXPECT_EQ(static_cast<int>(sequence->blocks.size()), (used + 15) / 16);
    // The cache is not asked what it has of it.
    EXPECT_TRUE(sequence->looked_up);
    EXPECT_TRUE(kept.empty());
  }
  auto sequence = Start();
  AdoptKept(context, *sequence);
  EXPECT_EQ(sequence->computed, 0);
  EXPECT_FALSE(sequence->looked_up);
}

}  // namespace
}  // namespace penstock
