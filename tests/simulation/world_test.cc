// Each fault of the simulated world does what its name says.

#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

bool Wait(SimCluster& cluster, absl::Duration time) {
  return cluster.RunUntil([] { return false; }, time);
}

TEST(WorldTest, AKilledWorkerIsBackWithAnotherIncarnation) {
  SimCluster cluster({});
  const WorkerKey before = cluster.worker("prefill0")->key();
  cluster.Inject(
      {FaultKind::kKill, absl::Seconds(1), absl::Seconds(2), "prefill0"});
  Wait(cluster, absl::Milliseconds(1500));
  EXPECT_EQ(cluster.worker("prefill0"), nullptr);
  Wait(cluster, absl::Seconds(2));
  ASSERT_NE(cluster.worker("prefill0"), nullptr);
  EXPECT_NE(cluster.worker("prefill0")->key(), before);
  EXPECT_EQ(cluster.faults(), 1);
}

TEST(WorldTest, AFailedStepIsTheWorkersFault) {
  SimCluster cluster({});
  cluster.Inject({FaultKind::kStepFails, absl::ZeroDuration(),
                  absl::ZeroDuration(), "decode0"});
  SimClient* client = cluster.Submit(10, 5);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.faults(), 1);
  EXPECT_EQ(cluster.Check(), "");
  EXPECT_TRUE(client->ended.has_value());
}

}  // namespace
}  // namespace penstock
