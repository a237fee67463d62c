#include "router/core/frame_merger.h"

#include <vector>

#include "common/env/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tokens whose ids are their indices.
TokenFrame Frame(int first, int count,
                 FinishReason finish = FinishReason::kNone) {
  TokenFrame frame;
  frame.first_index = first;
  for (int i = 0; i < count; ++i) frame.tokens.push_back({first + i, "x", {}});
  frame.finish = finish;
  return frame;
}

std::vector<TokenId> Ids(FrameMerger& merger) {
  std::vector<TokenId> ids;
  for (const TokenFrame& frame : merger.Take()) {
    EXPECT_EQ(frame.tokens.empty() ? -1 : frame.first_index,
              frame.tokens.empty() ? -1 : frame.tokens[0].id);
    for (const FrameToken& token : frame.tokens) ids.push_back(token.id);
  }
  return ids;
}

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;

TEST(FrameMergerTest, JoinsPrefillAndDecode) {
  FrameMerger merger({.handoff = true});
  ASSERT_TRUE(merger.Push(kP, Frame(0, 1)).ok());
  EXPECT_FALSE(merger.decoding());
  ASSERT_TRUE(merger.Push(kD, Frame(1, 2)).ok());
  EXPECT_TRUE(merger.decoding());
  EXPECT_THAT(Ids(merger), ElementsAre(0, 1, 2));
  ASSERT_TRUE(merger.Push(kD, Frame(3, 1, FinishReason::kLength)).ok());
  EXPECT_THAT(Ids(merger), ElementsAre(3));
  EXPECT_TRUE(merger.complete());
}

TEST(FrameMergerTest, HoldsDecodeUntilPrefillsTokenIsThere) {
  FrameMerger merger({.handoff = true});
  ASSERT_TRUE(merger.Push(kD, Frame(1, 2)).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(3, 0, FinishReason::kStop)).ok());
  EXPECT_THAT(Ids(merger), IsEmpty());
  EXPECT_FALSE(merger.complete());
  EXPECT_EQ(merger.received(), 0);
  ASSERT_TRUE(merger.Push(kP, Frame(0, 1)).ok());
  EXPECT_TRUE(merger.complete());
  EXPECT_THAT(Ids(merger), ElementsAre(0, 1, 2));
}

// The leg that ends last need not be the one whose frame comes last: the facts
// of the whole come with the last frame, once.
TEST(FrameMergerTest, TheLastFrameHasTheFacts) {
  FrameMerger merger({.handoff = true, .samples = 2});
  auto frame = [](int sample, int first, FinishReason finish) {
    TokenFrame frame = Frame(first, 1, finish);
    frame.sample = sample;
    return frame;
  };
  TokenFrame facts = frame(0, 1, FinishReason::kLength);
  facts.usage.prompt_tokens = 7;
  facts.timings.decode = absl::Milliseconds(3);
  facts.transfer.bytes_moved = 9;
  ASSERT_TRUE(merger.Push(kP, frame(0, 0, FinishReason::kNone)).ok());
  ASSERT_TRUE(merger.Push(kD, facts).ok());
  ASSERT_TRUE(merger.Push(kP, frame(1, 0, FinishReason::kStop)).ok());
  const std::vector<TokenFrame> frames = merger.Take();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_TRUE(merger.complete());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(frames[i].usage.prompt_tokens, 0);
    EXPECT_EQ(frames[i].timings.decode, absl::ZeroDuration());
    EXPECT_EQ(frames[i].transfer.bytes_moved, 0u);
  }
  EXPECT_EQ(frames[2].sample, 1);
  EXPECT_EQ(frames[2].usage.prompt_tokens, 7);
  EXPECT_EQ(frames[2].timings.decode, absl::Milliseconds(3));
  EXPECT_EQ(frames[2].transfer.bytes_moved, 9u);
}

TEST(FrameMergerTest, DropsWhatCameBefore) {
  FrameMerger merger({.handoff = false});
  ASSERT_TRUE(merger.Push(kD, Frame(0, 3)).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(0, 3)).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(1, 1)).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(2, 3)).ok());
  EXPECT_THAT(Ids(merger), ElementsAre(0, 1, 2, 3, 4));
  // Decode repeats prefill's token.
  FrameMerger handoff({.handoff = true});
  ASSERT_TRUE(handoff.Push(kP, Frame(0, 1)).ok());
  ASSERT_TRUE(handoff.Push(kD, Frame(0, 2)).ok());
  EXPECT_THAT(Ids(handoff), ElementsAre(0, 1));
}

TEST(FrameMergerTest, GapsAreErrors) {
  FrameMerger local({.handoff = false});
  EXPECT_EQ(local.Push(kD, Frame(1, 1)).code(), absl::StatusCode::kInternal);
  FrameMerger handoff({.handoff = true});
  ASSERT_TRUE(handoff.Push(kD, Frame(1, 1)).ok());
  EXPECT_FALSE(handoff.Push(kD, Frame(3, 1)).ok());
  FrameMerger prefill({.handoff = true});
  EXPECT_FALSE(prefill.Push(kP, Frame(1, 1)).ok());
}

TEST(FrameMergerTest, NonsenseIsAnError) {
  FrameMerger merger({.handoff = false});
  EXPECT_FALSE(merger.Push(kD, Frame(-1, 2)).ok());
  TokenFrame other = Frame(0, 1);
  other.sample = 1;
  EXPECT_FALSE(merger.Push(kD, other).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(0, 5)).ok());
  EXPECT_FALSE(merger.Push(kD, Frame(2, 1, FinishReason::kStop)).ok());
}

TEST(FrameMergerTest, HoldsOnlySoMuch) {
  FrameMerger merger({.handoff = true});
  ASSERT_TRUE(merger.Push(kD, Frame(1, 4096)).ok());
  EXPECT_FALSE(merger.Push(kD, Frame(4097, 1)).ok());
}

TEST(FrameMergerTest, EachSampleHasItsOwnIndices) {
  FrameMerger merger({.handoff = true, .samples = 2});
  auto of = [](int sample, TokenFrame frame) {
    frame.sample = sample;
    return frame;
  };
  ASSERT_TRUE(merger.Push(kP, of(0, Frame(0, 1))).ok());
  EXPECT_FALSE(merger.prefilled());
  // Sample 1 is ahead of its first token; the usage of all comes with it.
  TokenFrame end = of(1, Frame(1, 1, FinishReason::kStop));
  end.usage.prompt_tokens = 7;
  ASSERT_TRUE(merger.Push(kD, of(0, Frame(1, 2, FinishReason::kStop))).ok());
  ASSERT_TRUE(merger.Push(kD, end).ok());
  EXPECT_THAT(Ids(merger), ElementsAre(0, 1, 2));
  EXPECT_FALSE(merger.complete());
  ASSERT_TRUE(merger.Push(kP, of(1, Frame(0, 1))).ok());
  EXPECT_TRUE(merger.prefilled());
  EXPECT_TRUE(merger.complete());
  std::vector<TokenFrame> frames = merger.Take();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].sample, 1);
  EXPECT_EQ(frames[1].usage.prompt_tokens, 7);
  EXPECT_EQ(merger.received(), 5);
  EXPECT_FALSE(FrameMerger({.samples = 2}).Push(kD, of(2, Frame(0, 1))).ok());
}

// Sample 1 ended with prefill's token, which comes last: it is the last frame.
TEST(FrameMergerTest, UsageIsOnTheLastFrameWhoeverSentIt) {
  FrameMerger merger({.handoff = true, .samples = 2});
  ASSERT_TRUE(merger.Push(kP, Frame(0, 1)).ok());
  TokenFrame end = Frame(1, 1, FinishReason::kLength);
  end.usage.prompt_tokens = 7;
  ASSERT_TRUE(merger.Push(kD, end).ok());
  TokenFrame late = Frame(0, 1, FinishReason::kStop);
  late.sample = 1;
  ASSERT_TRUE(merger.Push(kP, late).ok());
  std::vector<TokenFrame> frames = merger.Take();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[1].usage.prompt_tokens, 0);
  EXPECT_EQ(frames[2].usage.prompt_tokens, 7);
}

TEST(FrameMergerTest, DeferredAnswersComeWholeFromDecode) {
  FrameMerger merger({.handoff = true, .deferred = true});
  EXPECT_TRUE(merger.prefilled());
  ASSERT_TRUE(merger.Push(kD, Frame(0, 2)).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(2, 1, FinishReason::kStop)).ok());
  EXPECT_THAT(Ids(merger), ElementsAre(0, 1, 2));
  EXPECT_TRUE(merger.complete());
}

TEST(FrameMergerTest, ThePromptComesFirstWithoutGapsOrDoubles) {
  auto part = [](int first, int count) {
    TokenFrame frame;
    frame.prompt.first_index = first;
    for (int i = 0; i < count; ++i) {
      frame.prompt.tokens.push_back({static_cast<float>(first + i), {}});
    }
    return frame;
  };
  FrameMerger merger({.handoff = true,
                      .deferred = true,
                      .scored_prompt = 6,
                      .scored_before = 2});
  ASSERT_TRUE(merger.Push(kD, Frame(0, 1, FinishReason::kStop)).ok());
  EXPECT_THAT(merger.Take(), IsEmpty());
  EXPECT_FALSE(merger.Push(kP, part(4, 1)).ok());
  EXPECT_FALSE(merger.Push(kP, part(1, 6)).ok());
  ASSERT_TRUE(merger.Push(kP, part(1, 3)).ok());
  ASSERT_TRUE(merger.Push(kP, part(4, 2)).ok());
  std::vector<TokenFrame> frames = merger.Take();
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].prompt.first_index, 2);
  EXPECT_EQ(frames[0].prompt.tokens.size(), 2u);
  EXPECT_EQ(frames[1].prompt.first_index, 4);
  EXPECT_EQ(frames[2].tokens.size(), 1u);
  EXPECT_TRUE(merger.complete());
}

TEST(FrameMergerTest, GoesOnWhereAnEarlierAttemptEnded) {
  FrameMerger handoff({.handoff = true, .starts = {{.first = 5}}});
  EXPECT_FALSE(handoff.prefilled());
  ASSERT_TRUE(handoff.Push(kD, Frame(6, 2)).ok());
  EXPECT_THAT(Ids(handoff), IsEmpty());
  ASSERT_TRUE(handoff.Push(kP, Frame(5, 1)).ok());
  EXPECT_TRUE(handoff.prefilled());
  EXPECT_THAT(Ids(handoff), ElementsAre(5, 6, 7));
  EXPECT_EQ(handoff.received(), 3);
  // Decode that makes everything again gives what is missing only.
  FrameMerger again({.deferred = true, .starts = {{.first = 5}}});
  ASSERT_TRUE(again.Push(kD, Frame(0, 4)).ok());
  ASSERT_TRUE(again.Push(kD, Frame(4, 3, FinishReason::kStop)).ok());
  EXPECT_THAT(Ids(again), ElementsAre(5, 6));
  FrameMerger gap({.starts = {{.first = 5}}});
  EXPECT_FALSE(gap.Push(kD, Frame(6, 1)).ok());
}

TEST(FrameMergerTest, SamplesThatHaveEndedStayEnded) {
  FrameMerger merger(
      {.samples = 3, .starts = {{.first = 2}, {.first = 4, .ended = true}}});
  auto push = [&](int sample, TokenFrame frame) {
    frame.sample = sample;
    return merger.Push(kD, frame).ok();
  };
  EXPECT_TRUE(push(1, Frame(4, 1, FinishReason::kStop)));
  EXPECT_THAT(merger.Take(), IsEmpty());
  TokenFrame end = Frame(2, 1, FinishReason::kStop);
  end.usage.prompt_tokens = 7;
  EXPECT_TRUE(push(2, Frame(0, 1, FinishReason::kStop)));
  EXPECT_TRUE(push(0, end));
  EXPECT_TRUE(merger.complete());
  std::vector<TokenFrame> frames = merger.Take();
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].usage.prompt_tokens, 0);
  EXPECT_EQ(frames[1].usage.prompt_tokens, 7);
}

TEST(FrameMergerTest, NobodyGivesMoreThanWasAskedFor) {
  FrameMerger merger({.max_tokens = 4, .starts = {{.first = 2}}});
  EXPECT_FALSE(merger.Push(kD, Frame(2, 3)).ok());
  EXPECT_TRUE(merger.Push(kD, Frame(2, 2, FinishReason::kLength)).ok());
}

TEST(FrameMergerTest, NothingFollowsTheLastFrame) {
  FrameMerger merger({.handoff = true});
  ASSERT_TRUE(merger.Push(kP, Frame(0, 1, FinishReason::kLength)).ok());
  ASSERT_TRUE(merger.Push(kD, Frame(1, 1)).ok());
  EXPECT_THAT(Ids(merger), ElementsAre(0));
}

// Any split into frames, any repetition and any interleaving of the two legs
// gives each token once.
TEST(FrameMergerTest, AnySplitGivesEachTokenOnce) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SeededRandom random(seed);
    const int total = 2 + random.Below(30);
    FrameMerger merger({.handoff = true});
    std::vector<TokenId> got;
    bool prefill_sent = false;
    int next = 1;
    while (next < total || !prefill_sent) {
      if (!prefill_sent && (next == total || random.Below(4) == 0)) {
        ASSERT_TRUE(merger.Push(kP, Frame(0, 1)).ok());
        prefill_sent = true;
      } else if (next < total) {
        int first = next - random.Below(next + 1);
        int count = (next - first) + 1 + random.Below(total - next);
        ASSERT_TRUE(
            merger
                .Push(kD, Frame(first, count,
                                first + count == total ? FinishReason::kLength
                                                       : FinishReason::kNone))
                .ok());
        next = first + count;
      }
      for (TokenId id : Ids(merger)) got.push_back(id);
    }
    ASSERT_EQ(got.size(), static_cast<size_t>(total)) << "seed " << seed;
    for (int i = 0; i < total; ++i) ASSERT_EQ(got[i], i);
    ASSERT_TRUE(merger.complete());
  }
}

}  // namespace
}  // namespace penstock
