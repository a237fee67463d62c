// What the router expects workers to have cached, before they say so.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "router/core/testing/router_core_fixture.h"

namespace penstock {
namespace {

constexpr LegKind kP = LegKind::kPrefill, kD = LegKind::kDecode;
constexpr int kPrompt = 512, kBlocks = kPrompt / kBlockTokens;

class PredictionTest : public RouterCoreTest {
 protected:
  // Blocks of the prompt that the router takes the worker to have.
  int Known(const std::string& name) {
    const auto chain = hasher_.Chain(hasher_.Root({ContentId(7), "", "", ""}),
                                     Request(kPrompt).prompt);
    const WorkerView* worker = core_->workers().Find({name, Incarnation(1)});
    return core_->workers().prefixes().Match(chain).BlocksOf(worker->slot);
  }
  const std::string& WorkerOf(LegId leg) { return Leg(leg).worker.name; }
  // The whole answer of the last request.
  void Answer() {
    core_->OnLegFrame(p_, FakeFrame(0, 1));
    core_->OnLegFrame(d_, FakeFrame(1, 1, FinishReason::kStop));
    core_->OnLegFinished(p_, absl::OkStatus());
    core_->OnLegFinished(d_, absl::OkStatus());
  }
};

TEST_F(PredictionTest, TheNextRequestFollowsBeforeAnyEvent) {
  Cluster(4, 1);
  Submit(Request(kPrompt));
  const std::string first = WorkerOf(p_);
  EXPECT_EQ(Known(first), kBlocks);
  Answer();
  for (int i = 0; i < 8; ++i) {
    FakeClient client;
    GenerateRequest next = Request(kPrompt);
    next.prompt.resize(kPrompt + 100, 1000 + i);
    ASSERT_TRUE(core_->Submit(next, &client).ok());
    TakeLastLegs();
    EXPECT_EQ(WorkerOf(p_), first);
    EXPECT_EQ(probe_.placements.back().hit_tokens, kPrompt);
    Answer();
    EXPECT_TRUE(client.status.ok());
  }
}

TEST_F(PredictionTest, ADecodeWorkerHasNothingBeforeItIsHandedIt) {
  Cluster(1, 2);
  Submit(Request(kPrompt));
  const std::string decode = WorkerOf(d_);
  const std::string other = decode == "d1" ? "d2" : "d1";
  Accept();
  core_->OnLegFrame(p_, FakeFrame(0, 1));
  EXPECT_EQ(Known(decode), 0);
  core_->OnLegFrame(d_, FakeFrame(1, 1));
  EXPECT_EQ(Known(decode), kBlocks);
  EXPECT_EQ(Known(other), 0);
  core_->OnLegFrame(d_, FakeFrame(2, 1, FinishReason::kStop));
}

TEST_F(PredictionTest, WhoPrefillsByItselfIsBelievedAtOnce) {
  Cluster(0, 2);
  Submit(Request(kPrompt));
  EXPECT_EQ(Known(WorkerOf(d_)), kBlocks);
  core_->OnLegFrame(d_, FakeFrame(0, 1, FinishReason::kStop));
}

TEST_F(PredictionTest, AFailedWorkerLeavesNoPrediction) {
  Cluster(2, 1);
  Submit(Request(kPrompt));
  const std::string failed = WorkerOf(p_);
  const std::string other = failed == "p1" ? "p2" : "p1";
  ASSERT_EQ(Known(failed), kBlocks);
  core_->OnLegFinished(p_, MakeError(ErrorReason::kQueueFull, "full"));
  Pass(options_.settle_grace);
  EXPECT_EQ(Known(failed), 0);
  TakeLastLegs();
  ASSERT_EQ(WorkerOf(p_), other) << "the next attempt";
  EXPECT_EQ(Known(other), kBlocks);
  Answer();
}

TEST_F(PredictionTest, ACancelledRequestLeavesNoPrediction) {
  Cluster(1, 1);
  const RequestId id = Submit(Request(kPrompt));
  Accept();
  core_->OnLegFrame(d_, FakeFrame(0, 1));
  ASSERT_EQ(Known("p1"), kBlocks);
  ASSERT_EQ(Known("d1"), kBlocks);
  core_->Cancel(id);
  EXPECT_EQ(Known("p1"), 0);
  EXPECT_EQ(Known("d1"), 0);
}

TEST_F(PredictionTest, APredictionThatDoesNotComeTrueIsForgotten) {
  Cluster(1, 1);
  Submit(Request(kPrompt));
  Answer();
  for (int i = 0; i < 11; ++i) {
    Pass(absl::Seconds(1));
    for (const char* name : {"p1", "d1"}) {
      Beat({name, Incarnation(1)}, WorkerHealth::kReady);
    }
  }
  FakeClient client;
  ASSERT_TRUE(core_->Submit(Request(kPrompt), &client).ok());
  TakeLastLegs();
  EXPECT_EQ(probe_.placements.back().hit_tokens, 0);
  Answer();
}

// Case 21, with what the router expects of each choice.
TEST_F(PredictionTest, ABurstOfEqualRequestsIsSpread) {
  Cluster(4, 4);
  std::vector<std::unique_ptr<FakeClient>> clients;
  std::map<std::string, int> legs;
  for (int i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<FakeClient>());
    ASSERT_TRUE(core_->Submit(Request(kPrompt), clients.back().get()).ok());
    ++legs[WorkerOf(legs_.Last(kP))];
    ++legs[WorkerOf(legs_.Last(kD))];
  }
  for (const char* name : {"p1", "p2", "p3", "p4"}) {
    EXPECT_GE(legs[name], 4) << name;
    EXPECT_LE(legs[name], 32) << name;
  }
  for (const char* name : {"d1", "d2", "d3", "d4"}) {
    EXPECT_EQ(legs[name], 16) << name;
  }
  for (LegId id = 1; id <= legs_.Last(kD); id += 2) {
    core_->OnLegFrame(id, FakeFrame(0, 1));
    core_->OnLegFrame(id + 1, FakeFrame(1, 1, FinishReason::kStop));
  }
}

}  // namespace
}  // namespace penstock
