#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

constexpr int kPrompt = 90;
constexpr int kTokens = 40;

// A worker that drains gives what runs to others, with its KV.
class HandoffDrainTest : public HandoffFixture {
 protected:
  static void ExpectYielded(const Leg& leg, int kept) {
    const ErrorInfo info = ErrorInfoOf(*leg.ended);
    EXPECT_EQ(info.reason, ErrorReason::kDraining);
    EXPECT_EQ(info.kept_tokens, kept);
  }
  static int Count(const std::vector<TokenId>& tokens) {
    return static_cast<int>(tokens.size());
  }
};

TEST_F(HandoffDrainTest, ARunningRequestIsPushedToAnotherDecodeWorker) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  const auto all = SimModel::Generate(request.prompt, kTokens, 1);
  Leg p, d, p2, d2;
  StartPair(request, p, d);
  RunUntil([&] { return d.tokens.size() == 9; });
  decode_->core().BeginDrain();
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  const int had = 1 + Count(d.tokens);
  EXPECT_EQ(had, 11) << "it stops at the next token";
  // All but the last token's.
  ExpectYielded(d, kPrompt + had - 1);
  EXPECT_TRUE(decode_->core().idle());
  EXPECT_TRUE(decode_->core().keeps());
  const int64_t rows_before = decode_->backend().rows_computed();
  other_ = Make("d2", 3, {false, true}, {});
  StartPair(request, *decode_, *other_, 2, First(all, had), p2, d2);
  ASSERT_TRUE(RunUntil([&] { return p2.ended && d2.ended; }));
  EXPECT_TRUE(p2.ended->ok()) << *p2.ended;
  EXPECT_TRUE(d2.ended->ok()) << *d2.ended;
  EXPECT_EQ(d.tokens, After(First(all, had), 1));
  EXPECT_EQ(p2.tokens, std::vector<TokenId>{all[had]});
  EXPECT_EQ(d2.tokens, After(all, had + 1));
  EXPECT_EQ(d2.last->usage.completion_tokens, kTokens);
  // The drained worker computes the last token's row, the other goes on.
  EXPECT_EQ(decode_->backend().rows_computed(), rows_before + 1);
  EXPECT_EQ(other_->backend().rows_computed(), kTokens - had - 1);
  EXPECT_FALSE(decode_->core().keeps());
  ExpectClean(*decode_);
  ExpectClean(*other_);
}

TEST_F(HandoffDrainTest, ItComesBackWhenNobodyElseCanTakeIt) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  const auto all = SimModel::Generate(request.prompt, kTokens, 1);
  Leg d, back;
  StartAlone(request, *decode_, 1, {}, d);
  RunUntil([&] { return d.tokens.size() == 9; });
  decode_->core().BeginDrain();
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  ExpectYielded(d, kPrompt + Count(d.tokens) - 1);
  StartAlone(request, *decode_, 2, {d.tokens}, back);
  ASSERT_TRUE(RunUntil([&] { return back.ended.has_value(); }));
  EXPECT_TRUE(back.ended->ok()) << *back.ended;
  EXPECT_EQ(back.tokens, After(all, Count(d.tokens)));
  // Nothing was computed twice.
  EXPECT_EQ(decode_->backend().rows_computed(), kPrompt + kTokens - 1);
  ExpectClean(*decode_);
}

// Nor does it depend on the KV, which may have been given up meanwhile.
TEST_F(HandoffDrainTest, ItComesBackWithoutItsKv) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  const auto all = SimModel::Generate(request.prompt, kTokens, 1);
  Leg d, back;
  StartAlone(request, *decode_, 1, {}, d);
  RunUntil([&] { return d.tokens.size() == 9; });
  decode_->core().BeginDrain();
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  RunUntil([&] { return !decode_->core().keeps(); });
  StartAlone(request, *decode_, 2, {d.tokens}, back);
  ASSERT_TRUE(RunUntil([&] { return back.ended.has_value(); }));
  EXPECT_TRUE(back.ended->ok()) << *back.ended;
  EXPECT_EQ(back.tokens, After(all, Count(d.tokens)));
  ExpectClean(*decode_);
}

TEST_F(HandoffDrainTest, AnArrivingRequestIsGivenUpOnceItRuns) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  Leg p, d;
  StartPair(request, p, d);
  RunUntil([&] { return d.accepted; });
  decode_->core().BeginDrain();
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(p.ended->ok());
  EXPECT_EQ(d.tokens.size(), 1u);
  ExpectYielded(d, kPrompt + 1);
}

TEST_F(HandoffDrainTest, SeveralAnswersAndDeferredOnesFinishInPlace) {
  GenerateRequest several = Request(1, kPrompt, kTokens);
  several.n = 2;
  GenerateRequest deferred = Request(2, kPrompt, kTokens);
  deferred.best_of = 2;
  Leg one, two;
  StartAlone(several, *decode_, 1, {}, one);
  StartAlone(deferred, *decode_, 1, {}, two);
  RunUntil([&] { return one.samples[1].size() == 9; });
  decode_->core().BeginDrain();
  ASSERT_TRUE(RunUntil([&] { return one.ended && two.ended; }));
  EXPECT_TRUE(one.ended->ok()) << *one.ended;
  EXPECT_TRUE(two.ended->ok()) << *two.ended;
  EXPECT_EQ(one.samples[1].size(), size_t{kTokens});
  EXPECT_EQ(two.tokens.size(), size_t{kTokens});
  ExpectClean(*decode_);
}

TEST_F(HandoffDrainTest, OnlyRequestsThatAreKeptMayStillCome) {
  const GenerateRequest request = Request(1, kPrompt, kTokens);
  Leg d;
  StartAlone(request, *decode_, 1, {}, d);
  RunUntil([&] { return d.tokens.size() == 9; });
  auto reason = [&](LegKind kind, uint64_t id) {
    Leg leg;
    decode_->core().StartLeg(kind, LegFor(Request(id, 50, 5), *decode_, "x"),
                             &leg);
    return leg.ended ? ErrorInfoOf(*leg.ended).reason : ErrorReason::kUnknown;
  };
  EXPECT_EQ(reason(LegKind::kPrefill, 1), ErrorReason::kTransferFailed)
      << "not kept yet";
  decode_->core().BeginDrain();
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  EXPECT_EQ(reason(LegKind::kPrefill, 2), ErrorReason::kDraining);
  EXPECT_EQ(reason(LegKind::kDecode, 2), ErrorReason::kDraining);
  EXPECT_TRUE(decode_->core().keeps());
  ExpectClean(*decode_);
}

}  // namespace
}  // namespace penstock
