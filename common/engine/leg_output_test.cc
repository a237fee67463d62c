#include "common/engine/leg_output.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

class LegOutputTest : public testing::Test,
                      protected LegSink,
                      protected HandoffProbe {
 protected:
  LegOutput Make(LegKind kind) {
    LegRequest leg;
    leg.attempt = AttemptId(5);
    return LegOutput(leg, kind, this, &clock_, this);
  }

  void OnAccepted() override { heard_.push_back("accepted"); }
  void OnFrame(TokenFrame frame) override {
    heard_.push_back(absl::StrCat("frame ", frame.first_index));
    frames_.push_back(std::move(frame));
  }
  void OnFinished(const absl::Status& status) override {
    heard_.push_back(absl::StrCat("finished ", OutcomeName(status)));
  }
  void LegStarted(bool prefill) override {
    probed_.push_back(prefill ? "prefill starts" : "decode starts");
  }
  void LegEnded(bool prefill, absl::string_view reason) override {
    probed_.push_back(absl::StrCat(prefill ? "prefill " : "decode ", reason));
  }

  ManualClock clock_;
  std::vector<std::string> heard_, probed_;
  std::vector<TokenFrame> frames_;
};

TEST_F(LegOutputTest, EndsOnceAndSaysNothingAfterwards) {
  LegOutput output = Make(LegKind::kPrefill);
  EXPECT_FALSE(output.finished());
  output.Accept();
  output.Accept();
  TokenDelivery delivery;
  delivery.index = 3;
  output.Deliver(delivery, nullptr);
  output.Finish(MakeError(ErrorReason::kDraining, "drains"));
  EXPECT_TRUE(output.finished());
  output.Accept();
  output.Deliver(delivery, nullptr);
  output.DeliverPrompt({});
  output.Finish(absl::OkStatus());
  EXPECT_THAT(heard_, ElementsAre("accepted", "frame 3", "finished DRAINING"));
  EXPECT_THAT(probed_, ElementsAre("prefill starts", "prefill DRAINING"));
}

TEST_F(LegOutputTest, NothingIsAcceptedAfterTheEnd) {
  LegOutput output = Make(LegKind::kDecode);
  output.Finish(absl::OkStatus());
  output.Accept();
  EXPECT_THAT(heard_, ElementsAre("finished ok"));
  EXPECT_THAT(probed_, ElementsAre("decode starts", "decode ok"));
}

TEST_F(LegOutputTest, AFrameIsWhatWasDelivered) {
  LegOutput output = Make(LegKind::kDecode);
  TokenDelivery delivery;
  delivery.sample = 2;
  delivery.index = 4;
  delivery.token.id = 17;
  delivery.token.text = "ab";
  delivery.finish = FinishReason::kLength;
  delivery.final_text = "c";
  output.Deliver(delivery, nullptr);
  PromptLogprobs part;
  part.first_index = 1;
  part.tokens.resize(3);
  output.DeliverPrompt(part);
  ASSERT_EQ(frames_.size(), 2u);
  EXPECT_EQ(frames_[0].attempt, AttemptId(5));
  EXPECT_EQ(frames_[0].sample, 2);
  EXPECT_EQ(frames_[0].first_index, 4);
  ASSERT_EQ(frames_[0].tokens.size(), 1u);
  EXPECT_EQ(frames_[0].tokens[0].id, 17);
  EXPECT_EQ(frames_[0].tokens[0].text, "ab");
  EXPECT_EQ(frames_[0].finish, FinishReason::kLength);
  EXPECT_EQ(frames_[0].final_text, "c");
  EXPECT_EQ(frames_[0].usage.prompt_tokens, 0);
  EXPECT_EQ(frames_[1].attempt, AttemptId(5));
  EXPECT_EQ(frames_[1].prompt.first_index, 1);
  EXPECT_EQ(frames_[1].prompt.tokens.size(), 3u);
  EXPECT_TRUE(frames_[1].tokens.empty());
}

TEST_F(LegOutputTest, TheLastFrameSaysWhereTheTimeWent) {
  LegOutput output = Make(LegKind::kDecode);
  EXPECT_EQ(output.received_at(), clock_.Now());
  clock_.Advance(absl::Milliseconds(3));
  output.MarkScheduled();
  clock_.Advance(absl::Milliseconds(5));
  TokenDelivery delivery;
  output.Deliver(delivery, nullptr);
  clock_.Advance(absl::Milliseconds(7));
  LegFacts facts;
  facts.usage.prompt_tokens = 30;
  facts.transfer.bytes_moved = 99;
  delivery.index = 1;
  output.Deliver(delivery, &facts);
  const TokenFrame& last = frames_.back();
  EXPECT_EQ(last.usage.prompt_tokens, 30);
  EXPECT_EQ(last.transfer.bytes_moved, 99u);
  EXPECT_EQ(last.timings.queue, absl::Milliseconds(3));
  EXPECT_EQ(last.timings.prefill, absl::Milliseconds(5));
  EXPECT_EQ(last.timings.first_token, absl::Milliseconds(8));
  EXPECT_EQ(last.timings.decode, absl::Milliseconds(7));
  EXPECT_EQ(frames_[0].timings.queue, absl::ZeroDuration());
}

// After a handoff the first token was another leg's: so were its timings.
TEST_F(LegOutputTest, TimingsOfAnotherLegsTokenStayAsTheyCame) {
  LegOutput output = Make(LegKind::kDecode);
  output.timings().first_token = absl::Milliseconds(40);
  output.timings().prefill = absl::Milliseconds(30);
  clock_.Advance(absl::Milliseconds(3));
  output.MarkToken(1);
  clock_.Advance(absl::Milliseconds(4));
  output.MarkToken(0);  // of another answer, later
  LegFacts facts;
  TokenDelivery delivery;
  delivery.index = 2;
  output.Deliver(delivery, &facts);
  EXPECT_EQ(frames_[0].timings.first_token, absl::Milliseconds(40));
  EXPECT_EQ(frames_[0].timings.prefill, absl::Milliseconds(30));
  EXPECT_EQ(frames_[0].timings.decode, absl::Milliseconds(4));
}

}  // namespace
}  // namespace penstock
