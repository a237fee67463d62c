// Each fault of a path between hosts, and of the pages on it, does what its
// name says, with values that follow from latency and bandwidth alone.

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/world_fixture.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

// --- paths ------------------------------------------------------------------

TEST(WorldPathsTest, APartitionBreaksStreamsAfterThreeSeconds) {
  SimCluster cluster(Options());
  cluster.Inject(At(absl::Seconds(1), FaultKind::kPartition, "decode0",
                    absl::Seconds(30)));
  // Workers dial the router: its own patience is what loses them, ten seconds
  // without a report.
  Wait(cluster, absl::Milliseconds(10'900));
  EXPECT_FALSE(Knows(cluster, "decode0") && !Suspects(cluster, "decode0"));
  Wait(cluster, absl::Seconds(1));
  EXPECT_FALSE(Knows(cluster, "decode0"));
  Wait(cluster, absl::Seconds(25));
  EXPECT_TRUE(Knows(cluster, "decode0"));
}

TEST(WorldPathsTest, AShortPartitionIsOnlyADelay) {
  SimCluster cluster(Options());
  SimClient* client = cluster.Submit(100, 40);
  cluster.Inject(At(absl::Milliseconds(30), FaultKind::kPartition, "decode0",
                    absl::Seconds(2)));
  Wait(cluster, absl::Milliseconds(1500));
  EXPECT_FALSE(client->ended.has_value());
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(client->ended->ok()) << *client->ended;
  EXPECT_EQ(cluster.Check(), "");
}

TEST(WorldPathsTest, WhatAHalfOpenHostSendsIsLostAndItDoesNotNotice) {
  SimCluster cluster(Options());
  cluster.Inject(
      At(absl::Seconds(1), FaultKind::kHalfOpen, "decode0", absl::Seconds(2)));
  SimPaths& paths = cluster.network().paths();
  Wait(cluster, absl::Milliseconds(1100));
  EXPECT_TRUE(paths.Blocked("decode0", "router"));
  EXPECT_FALSE(paths.Blocked("router", "decode0"));
  EXPECT_FALSE(paths.Noticed("decode0", "router"));
  EXPECT_TRUE(paths.Noticed("router", "decode0"));
  Wait(cluster, absl::Milliseconds(1800));
  EXPECT_TRUE(Suspects(cluster, "decode0"));
  Wait(cluster, absl::Milliseconds(700));
  EXPECT_FALSE(Suspects(cluster, "decode0"));
}

TEST(WorldPathsTest, ADelayIsAddedEachWay) {
  absl::Duration took[2];
  for (int delayed : {0, 1}) {
    SimCluster cluster(Options());
    if (delayed == 1) {
      cluster.Inject(At(kOnce, FaultKind::kDelay, "decode0", kOnce, 0.010));
      Wait(cluster, absl::Milliseconds(1));
    }
    SimClient* client = cluster.Submit(10, 5);
    const Instant begin = cluster.now();
    ASSERT_TRUE(cluster.RunUntil([&] { return client->ended.has_value(); }));
    took[delayed] = cluster.now() - begin;
  }
  EXPECT_EQ(took[1] - took[0], absl::Milliseconds(20));
}

TEST(WorldPathsTest, ABrokenStreamEndsItsLegAndNobodyIsLostForLong) {
  SimCluster cluster(Options());
  cluster.Inject(At(absl::Milliseconds(20), FaultKind::kStreamBreaks, "decode0",
                    absl::Milliseconds(100)));
  SimClient* client = cluster.Submit(10, 30);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(client->ended.has_value());
  EXPECT_GT(cluster.faults(), 1);
  EXPECT_EQ(cluster.Check(), "");
  ASSERT_TRUE(cluster.RunUntil([&] { return Knows(cluster, "decode0"); }));
}

// --- pages ------------------------------------------------------------------

// When each page of one handoff landed, from the first on.
std::vector<absl::Duration> Landings(SimClusterOptions options,
                                     const std::vector<Fault>& faults) {
  SimCluster cluster(options);
  std::vector<Instant> at;
  cluster.network().on_page = [&](TransferId, absl::Span<uint8_t>) {
    at.push_back(cluster.now());
  };
  for (const Fault& fault : faults) cluster.Inject(fault);
  Wait(cluster, absl::Milliseconds(1));
  SimClient* client = cluster.Submit(64, 4);
  EXPECT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(client->ended->ok()) << *client->ended;
  EXPECT_EQ(cluster.Check(), "");
  EXPECT_TRUE(cluster.network().pages_in_flight().empty());
  std::vector<absl::Duration> since;
  for (Instant landed : at) since.push_back(landed - at.front());
  return since;
}

TEST(WorldPathsTest, PagesShareTheBandwidthOfALink) {
  SimClusterOptions options;
  options.bytes_per_second = 1e6;
  options.page_bytes = 10'000;
  const absl::Duration each = absl::Milliseconds(10);
  EXPECT_THAT(Landings(options, {}),
              ElementsAre(0 * each, each, 2 * each, 3 * each));
  EXPECT_THAT(
      Landings(options, {At(kOnce, FaultKind::kSlowLink, "decode0", kOnce, 3)}),
      ElementsAre(0 * each, 3 * each, 6 * each, 9 * each));
}

TEST(WorldPathsTest, EachPageFaultStillGivesTrueTokens) {
  for (FaultKind kind : {FaultKind::kPostFails, FaultKind::kPageDuplicated,
                         FaultKind::kPageReordered, FaultKind::kPageCorrupted,
                         FaultKind::kLateWrite, FaultKind::kCompletionLost}) {
    SimClusterOptions options;
    options.worker.handoff.post_timeout = absl::Seconds(1);
    SimCluster cluster(options);
    cluster.Inject(At(kOnce, kind, "prefill0", kOnce, 0.2));
    for (int i = 0; i < 20; ++i) {
      SimClient* client = cluster.Submit(100, 4);
      ASSERT_NE(client, nullptr);
      ASSERT_TRUE(cluster.RunUntilIdle()) << FaultName(kind);
      EXPECT_EQ(cluster.Check(), "") << FaultName(kind);
    }
    EXPECT_GT(cluster.faults(), 5) << FaultName(kind);
  }
}

TEST(WorldPathsTest, UncheckedWritesAreFencedBeforeTheirBlocksAreUsedAgain) {
  int quarantined = 0;  // at most at once
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.worker.blocks = 20;
    options.worker.handoff.post_timeout = absl::Milliseconds(200);
    SimTransportOptions unchecked;
    unchecked.receiver_validates = false;
    options.worker.transports = {unchecked};
    SimCluster cluster(options);
    cluster.Inject(
        At(kOnce, FaultKind::kLateWrite, "prefill0", absl::Seconds(2), 0.3));
    std::string wrong;
    cluster.after_event = [&] {
      SimWorker* decode = cluster.worker("decode0");
      const BlockPool& pool = decode->core().pool();
      quarantined = std::max(quarantined, pool.counts().quarantined);
      for (const auto& [id, page] : cluster.network().pages_in_flight()) {
        if (page.to != decode->key() || page.block.index < 0) continue;
        if (!pool.IsLive(page.block) && wrong.empty() &&
            cluster.network().MayLand(page)) {
          wrong = "a block is free while a write may land";
        }
      }
    };
    for (int i = 0; i < 12; ++i) {
      SimClient* client = cluster.Submit(60, 8);
      cluster.After(absl::Milliseconds(6 + i), [&cluster, client] {
        if (!client->ended) cluster.Cancel(client);
      });
      Wait(cluster, absl::Milliseconds(4));
    }
    ASSERT_TRUE(cluster.RunUntilIdle());
    EXPECT_EQ(wrong, "");
    EXPECT_EQ(cluster.Check(), "");
  }
  EXPECT_GT(quarantined, 0);
}

}  // namespace
}  // namespace penstock
