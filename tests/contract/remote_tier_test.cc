// The shared store beyond what every tier promises: several workers, a store
// that goes and comes back, workers that go, other models.

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "common/env/random.h"
#include "gtest/gtest.h"
#include "tests/contract/remote_bench.h"

namespace penstock {
namespace {

class RemoteTierTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  TierBench bench_;
  TierBench other_;
};

TEST_F(RemoteTierTest, AWorkersPagesAreAnothers) {
  const auto store = StartStore({});
  AttachedTier tier(bench_, store->address(), TransportKind::kShm);
  const auto keys = bench_.Chain(1, 6);
  bench_.StoreAll(tier, keys);
  AttachedTier second(other_, store->address(), TransportKind::kShm);
  EXPECT_EQ(other_.Lookup(second, keys), 6);
  for (const TierKey& key : keys) EXPECT_TRUE(other_.Fetch(second, key).ok());
  // It says so, too, of a page that it has not seen.
  EXPECT_TRUE(absl::IsAlreadyExists(other_.Store(second, keys[0])));
  const StoreReport report = store->Report();
  EXPECT_EQ(report.memory_pages, 6u);
  EXPECT_EQ(report.puts, 6u);
  EXPECT_EQ(report.get_hits, 6u);
  EXPECT_EQ(report.bad_pages, 0u);
}

TEST_F(RemoteTierTest, AStoreWithADiskServesAfterARestart) {
  const auto keys = bench_.Chain(1, 10);
  auto store = StartStore({.disk_directory = folder_.path()});
  const std::string address = store->address();
  AttachedTier tier(bench_, address, TransportKind::kShm);
  bench_.StoreAll(tier, keys);
  EXPECT_TRUE(store->Drain(absl::Seconds(30)));
  store.reset();
  tier.AwaitAttached(false);
  EXPECT_EQ(bench_.Lookup(tier, keys), 0);
  EXPECT_TRUE(absl::IsUnavailable(bench_.Fetch(tier, keys[0])));
  EXPECT_TRUE(absl::IsFailedPrecondition(bench_.Store(tier, keys[0])));
  store = StartStore({.disk_directory = folder_.path(), .listen = address});
  tier.AwaitAttached(true);
  EXPECT_EQ(bench_.Lookup(tier, keys), 10);
  for (const TierKey& key : keys) EXPECT_TRUE(bench_.Fetch(tier, key).ok());
}

// Bits flipped in the files under an open store whose memory holds four pages:
// TierBench CHECKs that what is served is right.
TEST_F(RemoteTierTest, FlippedBitsBelowTheStoreAreNeverServed) {
  const auto keys = bench_.Chain(1, 40);
  const auto store = StartStore({.memory_bytes = 4 * bench_.page_bytes(),
                                 .disk_directory = folder_.path()});
  AttachedTier tier(bench_, store->address(), TransportKind::kShm);
  bench_.StoreAll(tier, keys);
  EXPECT_EQ(bench_.Lookup(tier, keys), 40);
  SeededRandom random(11);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (entry.path().extension() != ".pkv") continue;
    std::fstream file(entry.path(),
                      std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < 30; ++i) {
      const auto at = static_cast<std::streamoff>(
          random.Below(std::filesystem::file_size(entry.path())));
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at);
      file.put(static_cast<char>(byte ^ (1 << random.Below(8))));
    }
  }
  int served = 0, bad = 0;
  for (const TierKey& key : keys) {
    const absl::Status status = bench_.Fetch(tier, key);
    served += status.ok();
    bad += absl::IsDataLoss(status);
  }
  EXPECT_GT(served, 0);
  EXPECT_GT(bad, 0);
  EXPECT_GE(store->Report().bad_pages, static_cast<uint64_t>(bad));
}

TEST_F(RemoteTierTest, WhatIsUnderWayEndsWhenTheStoreGoes) {
  auto store = StartStore({.kind = TransportKind::kTcp});
  AttachedTier tier(bench_, store->address(), TransportKind::kTcp);
  const auto keys = bench_.Chain(1, 20);
  bench_.StoreAll(tier, {keys.begin(), keys.begin() + 10});
  std::vector<TierRead> reads;
  for (int i = 0; i < 10; ++i) reads.push_back({keys[i], {i, 1}});
  tier.Fetch(reads);
  int under_way = 10;
  for (int i = 10; i < 20; ++i) {
    bench_.Fill(i, keys[i]);
    under_way += tier.Store(keys[i], {i, 1}, absl::Seconds(1)).verdict ==
                 TierStoreVerdict::kTaken;
  }
  store.reset();
  for (; under_way > 0; --under_way) {
    const TierCompletion done = bench_.Await(tier);
    EXPECT_TRUE(done.status.ok() || absl::IsUnavailable(done.status))
        << done.status;
  }
  EXPECT_FALSE(tier.Poll().has_value());
}

TEST_F(RemoteTierTest, AWorkerThatGoesLeavesNoBlockBehind) {
  const auto store = StartStore({});
  const auto keys = bench_.Chain(1, 20);
  {
    AttachedTier tier(bench_, store->address(), TransportKind::kShm);
    for (int i = 0; i < 20; ++i) {
      bench_.Fill(i, keys[i]);
      tier.Store(keys[i], {i, 1}, absl::Seconds(1));
    }
  }
  // It waits until nothing is granted to anybody.
  EXPECT_TRUE(store->Drain(absl::Seconds(30)));
}

TEST_F(RemoteTierTest, AnotherModelIsRefused) {
  const auto store = StartStore({});
  AttachedTier tier(bench_, store->address(), TransportKind::kShm);
  bench_.StoreAll(tier, bench_.Chain(1, 2));
  TierBench foreign(TierBench::Options{.content = ContentId(78)});
  LoopThread loop(foreign.clock(), {.name = "foreign"});
  std::unique_ptr<RemoteTier> refused;
  loop.Start({});
  loop.RunAndWait([&] {
    RemoteTier::Options options{.worker = foreign.worker()};
    options.store = store->address();
    options.self.name = "foreign";
    options.self.incarnation = Incarnation(9);
    options.transports = {TransportKind::kShm};
    auto tier = RemoteTier::Create(
        std::move(options), {&foreign.clock(), &loop.timers(), loop.inbox()});
    ASSERT_TRUE(tier.ok()) << tier.status();
    refused = *std::move(tier);
  });
  // The one that is welcome goes on while the other is turned away.
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(bench_.Fetch(tier, bench_.Chain(1, 1)[0]).ok());
  }
  loop.RunAndWait([&] {
    EXPECT_FALSE(refused->stats().attached);
    EXPECT_EQ(refused->Lookup(TierBench::Hashes(bench_.Chain(1, 2))).blocks, 0);
    refused.reset();
  });
  loop.Stop();
  EXPECT_EQ(store->Report().workers, 1);
}

}  // namespace
}  // namespace penstock
