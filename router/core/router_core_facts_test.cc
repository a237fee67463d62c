// What the policy is told of a request that it is to place.

#include <vector>

#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "router/core/router_core.h"
#include "router/core/router_fakes.h"
#include "router/core/testing/router_core_fixture.h"

namespace penstock {
namespace {

// The usual policy, and what it was asked.
class WatchedPolicy : public RoutingPolicy {
 public:
  struct Asked {
    RequestFacts facts;  // without its lists
    std::vector<KeptPrefix> kept;
    size_t chain = 0;
  };
  explicit WatchedPolicy(const RoutingPolicy* usual) : usual_(usual) {}
  absl::StatusOr<Placement> Place(const RequestFacts& request,
                                  const ClusterView& view,
                                  Random& random) const override {
    asked.push_back({request,
                     {request.kept.begin(), request.kept.end()},
                     request.chain.size()});
    return usual_->Place(request, view, random);
  }
  mutable std::vector<Asked> asked;

 private:
  const RoutingPolicy* usual_;
};

class RouterCoreFactsTest : public RouterCoreTest {
 protected:
  void SetUp() override {
    core_ = *RouterCore::Create(
        options_,
        {&clock_, &timers_, &random_, &hasher_, &watched_, &legs_, &probe_});
    for (const char* name : {"p1", "p2"}) Add(name, true, false);
    for (const char* name : {"d1", "d2", "d3"}) Add(name, false, true);
  }
  WatchedPolicy watched_{&policy_};
  FakeClient other_;
};

TEST_F(RouterCoreFactsTest, TokensThatAreDeliveredAreNoLongerToCome) {
  GenerateRequest request = Request();
  request.stop.max_tokens = 10;
  Stream(3, request);
  EXPECT_EQ(watched_.asked.back().facts.prompt_tokens, 100);
  EXPECT_EQ(watched_.asked.back().facts.max_tokens, 10);
  core_->OnWorkerLost(Leg(d_).worker, absl::UnavailableError("broke"));
  ASSERT_EQ(watched_.asked.size(), 2u);
  EXPECT_EQ(watched_.asked.back().facts.prompt_tokens, 103);
  EXPECT_EQ(watched_.asked.back().facts.max_tokens, 7);
  EXPECT_FALSE(watched_.asked.back().facts.decode_alone);
}

TEST_F(RouterCoreFactsTest, OneTokenMayFillABlock) {
  Stream(1, Request(111));
  EXPECT_EQ(watched_.asked.back().chain, 6u);
  core_->OnWorkerLost(Leg(d_).worker, absl::UnavailableError("broke"));
  EXPECT_EQ(watched_.asked.back().facts.prompt_tokens, 112);
  EXPECT_EQ(watched_.asked.back().chain, 7u);
}

TEST_F(RouterCoreFactsTest, OfAWorkerOnlyWhatItKeptLastCounts) {
  Submit();
  Accept();
  for (int kept : {50, 90}) {
    // Each attempt gives a token, or nothing would be relied on.
    const int next = kept == 50 ? 0 : 1;
    EXPECT_EQ(Leg(p_).worker.name, "p1") << "who keeps it goes on";
    core_->OnLegFrame(p_, FakeFrame(next, 1));
    core_->OnLegFinished(d_, MakeError(ErrorReason::kTransferFailed, "late"));
    core_->OnLegFinished(p_, Kept(ErrorReason::kTransferFailed, kept));
    const std::vector<KeptPrefix>& told = watched_.asked.back().kept;
    ASSERT_EQ(told.size(), 1u) << kept;
    EXPECT_EQ(told[0].worker.name, "p1");
    EXPECT_EQ(told[0].tokens, kept);
    TakeLastLegs();
    Accept();
  }
}

TEST_F(RouterCoreFactsTest, SearchesAndSamplesDiffer) {
  GenerateRequest request = Request();
  request.n = 2;
  Submit(request);
  EXPECT_FALSE(watched_.asked.back().facts.beams);
  EXPECT_EQ(watched_.asked.back().facts.answers, 2);
  request.beam.width = 3;
  ASSERT_TRUE(core_->Submit(request, &other_).ok());
  EXPECT_TRUE(watched_.asked.back().facts.beams);
  EXPECT_EQ(watched_.asked.back().facts.answers, 3);
}

}  // namespace
}  // namespace penstock
