// Requests that cannot be done by their deadline are refused before they cost
// anything: in exact time, where each service takes twice what is predicted.

#include <memory>
#include <string>
#include <vector>

#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/router_core.h"
#include "router/core/router_fakes.h"
#include "router/core/testing/router_core_fixture.h"
#include "router/core/work_estimate.h"

namespace penstock {
namespace {

constexpr LegKind kD = LegKind::kDecode;
constexpr int kPrompt = 9;  // decode prefills it
constexpr int kTokens = 21;

class RouterCoreDeadlineTest : public RouterCoreTest {
 protected:
  static absl::Duration Service() {
    return 2 * WorkEstimate().Service(kPrompt, 0, kTokens);
  }
  static GenerateRequest Of(absl::Duration timeout) {
    GenerateRequest request = Request(kPrompt);
    request.stop.max_tokens = kTokens;
    request.stop.ignore_eos = true;
    request.timeout = timeout;
    return request;
  }
  // The newest leg ends after a whole service.
  void Serve() {
    const LegId leg = legs_.Last(kD);
    Pass(Service());
    TokenFrame frame = FakeFrame(0, kTokens, FinishReason::kLength);
    frame.usage = {kPrompt, 0, kTokens};
    core_->OnLegFrame(leg, frame);
    core_->OnLegFinished(leg, absl::OkStatus());
    core_->OnAlive({"d1", Incarnation(1)});
  }
  void Learn() {
    for (int i = 0; i < ServiceForecast::kEnough; ++i) {
      ASSERT_NE(Ask(Of(absl::Minutes(1))), nullptr) << refusal_;
      Serve();
    }
  }
};

TEST_F(RouterCoreDeadlineTest, NothingIsForetoldBeforeAnythingIsKnown) {
  Cluster(0, 1);
  EXPECT_EQ(core_->PredictedService(Of(absl::Minutes(1))),
            absl::ZeroDuration());
  FakeClient* client = Ask(Of(absl::Milliseconds(1)));
  ASSERT_NE(client, nullptr);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(ErrorInfoOf(client->status).reason, ErrorReason::kDeadline);
}

TEST_F(RouterCoreDeadlineTest, WhatTakesTooLongIsRefusedAtOnce) {
  Cluster(0, 1);
  Learn();
  EXPECT_EQ(core_->PredictedService(Of(absl::Minutes(1))), Service());
  const LegId before = legs_.Last(kD);
  EXPECT_EQ(Ask(Of(Service() - absl::Milliseconds(1))), nullptr);
  EXPECT_EQ(ErrorInfoOf(refusal_).reason, ErrorReason::kDeadline);
  EXPECT_EQ(legs_.Last(kD), before) << "no worker hears of it";
  EXPECT_EQ(probe_.rejected, std::vector{ErrorReason::kDeadline});
  ASSERT_NE(Ask(Of(Service() + absl::Milliseconds(1))), nullptr) << refusal_;
  Serve();
  EXPECT_TRUE(clients_.back()->status.ok());
}

// It may end with its first token, or its prompt is cached: nobody knows that
// it takes longer.
TEST_F(RouterCoreDeadlineTest, WhatMayTakeLessIsTaken) {
  Cluster(0, 1);
  Learn();
  GenerateRequest request = Of(Service() / 2);
  request.stop.ignore_eos = false;
  ASSERT_NE(Ask(request), nullptr) << refusal_;
  request = Of(Service() / 2);
  request.stop.stop_ids = {7};
  ASSERT_NE(Ask(request), nullptr) << refusal_;
  request.stop.min_tokens = kTokens;
  EXPECT_EQ(Ask(request), nullptr);

  GenerateRequest prompt = Request(1600);
  prompt.stop.max_tokens = 1;
  const absl::Duration cold = core_->PredictedService(prompt);
  CacheEvent event{
      1, BlocksStored{BlockHash(),
                      hasher_.Chain(hasher_.Root({ContentId(7), "", "", ""}),
                                    prompt.prompt)}};
  core_->OnCacheEvents({"d1", Incarnation(1)}, {&event, 1});
  EXPECT_LT(core_->PredictedService(prompt), cold / 50);
}

TEST_F(RouterCoreDeadlineTest, TheWaitCountsToo) {
  options_.max_running = 1;
  Cluster(0, 1);
  // One after the other: the queue empties at the rate of services.
  ASSERT_NE(Ask(Of(absl::Minutes(1))), nullptr);
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(Ask(Of(absl::Minutes(1))), nullptr) << refusal_;
    Serve();
  }
  // One runs; another four come after it, and are four services ahead.
  for (int i = 0; i < 4; ++i) ASSERT_NE(Ask(Of(absl::Minutes(1))), nullptr);
  EXPECT_EQ(Ask(Of(4 * Service())), nullptr);
  EXPECT_EQ(ErrorInfoOf(refusal_).reason, ErrorReason::kDeadline);
  EXPECT_NEAR(absl::FDivDuration(ErrorInfoOf(refusal_).retry_after, Service()),
              4, 0.2);
  FakeClient* fits = Ask(Of(6.5 * Service()));
  ASSERT_NE(fits, nullptr) << refusal_;
  for (int i = 0; i < 6; ++i) Serve();
  EXPECT_TRUE(fits->status.ok()) << fits->status;
}

// Others went first, and there is not enough time left when its turn comes.
TEST_F(RouterCoreDeadlineTest, WhatHasWaitedForTooLongIsNotBegun) {
  options_.max_running = 1;
  Cluster(0, 1);
  Learn();
  ASSERT_NE(Ask(Of(absl::Minutes(1))), nullptr);
  FakeClient* waits = Ask(Of(1.5 * Service()));
  ASSERT_NE(waits, nullptr) << refusal_;
  const LegId before = legs_.Last(kD);
  Serve();
  ASSERT_TRUE(waits->ended);
  EXPECT_EQ(ErrorInfoOf(waits->status).reason, ErrorReason::kDeadline);
  EXPECT_EQ(legs_.Last(kD), before);
}

}  // namespace
}  // namespace penstock
