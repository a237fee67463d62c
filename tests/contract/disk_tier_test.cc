// What becomes of a store on disk: opened again, torn, flipped, foreign, full.

#include "kvstore/disk/disk_tier.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/env/random.h"
#include "gtest/gtest.h"
#include "kvstore/disk/segment_format.h"
#include "tests/contract/tier_bench.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class DiskTierTest : public testing::Test {
 protected:
  DiskTier::Options OptionsFor(TierBench& bench, uint64_t max_bytes = 1 << 20) {
    DiskTier::Options options{bench.worker(), folder_.path(), max_bytes};
    options.io = DiskIo::Kind::kThreads;
    options.sync = DiskSync::kNever;
    options.clock = &bench.clock();
    return options;
  }

  std::unique_ptr<DiskTier> Open(uint64_t max_bytes = 1 << 20) {
    auto tier = DiskTier::Create(OptionsFor(bench_, max_bytes));
    CHECK(tier.ok()) << tier.status();
    return *std::move(tier);
  }

  std::vector<fs::path> Segments() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".pkv") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const fs::path& file : Segments()) {
      std::error_code gone;
      const uintmax_t size = fs::file_size(file, gone);
      if (!gone) bytes += size;
    }
    return bytes;
  }

  static void Flip(const fs::path& file, uint64_t bit) {
    std::fstream io(file, std::ios::in | std::ios::out | std::ios::binary);
    char byte = 0;
    io.seekg(static_cast<std::streamoff>(bit / 8));
    io.get(byte);
    io.seekp(static_cast<std::streamoff>(bit / 8));
    io.put(static_cast<char>(byte ^ (1 << (bit % 8))));
    CHECK(io.good());
  }

  // How many are served; TierBench CHECKs that those are right.
  int Served(KvTier& tier, const std::vector<TierKey>& keys) {
    int served = 0;
    for (const TierKey& key : keys) {
      const absl::Status status = bench_.Fetch(tier, key);
      EXPECT_TRUE(status.ok() || absl::IsNotFound(status) ||
                  absl::IsDataLoss(status))
          << status;
      served += status.ok();
    }
    return served;
  }

  TemporaryFolder folder_;
  TierBench bench_;
};

TEST_F(DiskTierTest, ServesWhatWasStoredBefore) {
  const auto keys = bench_.Chain(1, 40);
  for (int life = 0; life < 4; ++life) {
    auto tier = Open();
    EXPECT_EQ(tier->stats().pages, 10u * life);
    EXPECT_EQ(tier->stats().bad_records, 0u);
    EXPECT_EQ(bench_.Lookup(*tier, keys), 10 * life);
    EXPECT_EQ(Served(*tier, keys), 10 * life);
    bench_.StoreAll(*tier,
                    {keys.begin() + 10 * life, keys.begin() + 10 * (life + 1)});
  }
  EXPECT_EQ(Served(*Open(), keys), 40);
}

TEST_F(DiskTierTest, ServesWhatWasSyncedPageByPage) {
  auto options = OptionsFor(bench_);
  options.sync = DiskSync::kPage;
  const auto keys = bench_.Chain(1, 2);
  bench_.StoreAll(**DiskTier::Create(options), keys);
  EXPECT_EQ(Served(*Open(), keys), 2);
}

TEST_F(DiskTierTest, ATornTailCostsOnlyItself) {
  const auto keys = bench_.Chain(1, 10);
  bench_.StoreAll(*Open(), keys);
  ASSERT_EQ(Segments().size(), 1u);
  const uint64_t slot = kRecordHeaderBytes + bench_.page_bytes();
  uint64_t size = kSegmentHeaderBytes + 10 * slot;
  ASSERT_EQ(fs::file_size(Segments()[0]), size);
  SeededRandom random(1);
  for (int whole = 9; whole > 0; --whole) {
    fs::resize_file(Segments()[0],
                    kSegmentHeaderBytes + whole * slot + random.Below(slot));
    auto tier = Open();
    EXPECT_EQ(tier->stats().pages, static_cast<uint64_t>(whole));
    EXPECT_EQ(Served(*tier, keys), whole);
  }
}

// A record whose header is there and whose page is not: the system had written
// back the one and not the other.
TEST_F(DiskTierTest, AHoleInAPageIsAMiss) {
  const auto keys = bench_.Chain(1, 3);
  bench_.StoreAll(*Open(), keys);
  std::fstream io(Segments()[0],
                  std::ios::in | std::ios::out | std::ios::binary);
  io.seekp(kSegmentHeaderBytes + kRecordHeaderBytes);
  const std::string zeros(bench_.page_bytes(), '\0');
  io.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  io.close();
  auto tier = Open();
  EXPECT_TRUE(absl::IsDataLoss(bench_.Fetch(*tier, keys[0])));
  EXPECT_TRUE(absl::IsNotFound(bench_.Fetch(*tier, keys[0])));
  EXPECT_EQ(tier->stats().bad_pages, 1u);
  EXPECT_TRUE(bench_.Store(*tier, keys[0]).ok());
  EXPECT_EQ(Served(*tier, keys), 3);
}

// Bits flipped while nobody looks, and under a store that is open.
TEST_F(DiskTierTest, FlippedBitsAreNeverServed) {
  const auto keys = bench_.Chain(1, 60);
  bench_.StoreAll(*Open(), keys);
  SeededRandom random(17);
  int lost = 0;
  for (int round = 0; round < 40; ++round) {
    auto flip = [&] {
      const auto files = Segments();
      const fs::path& file = files[random.Below(files.size())];
      Flip(file, random.Below(8 * fs::file_size(file)));
    };
    for (int i = 0; i < 8; ++i) flip();
    auto tier = Open();
    for (int i = 0; i < 8; ++i) flip();
    const int served = Served(*tier, keys);
    lost += 60 - served;
    EXPECT_GT(served, 0);
    // What was lost can be stored again, and is good again.
    for (const TierKey& key : keys) {
      const absl::Status stored = bench_.Store(*tier, key);
      EXPECT_TRUE(stored.ok() || absl::IsAlreadyExists(stored)) << stored;
    }
    EXPECT_EQ(Served(*tier, keys), 60);
  }
  EXPECT_GT(lost, 100);
}

TEST_F(DiskTierTest, AnotherModelsStoreIsNotUsed) {
  const auto keys = bench_.Chain(1, 5);
  bench_.StoreAll(*Open(), keys);
  for (TierBench::Options other :
       {TierBench::Options{.content = ContentId(78)},
        TierBench::Options{.numerics = NumericsId(6)}}) {
    TierBench bench(other);
    auto tier = DiskTier::Create(OptionsFor(bench));
    ASSERT_TRUE(tier.ok()) << tier.status();
    EXPECT_EQ((*tier)->stats().pages, 0u);
    for (const TierKey& key : keys) {
      EXPECT_TRUE(absl::IsNotFound(bench.Fetch(**tier, key)));
    }
  }
  EXPECT_EQ(Served(*Open(), keys), 5);
}

// Its files, put where another store looks for its own.
TEST_F(DiskTierTest, ASegmentOfAnotherStoreIsRefused) {
  const auto keys = bench_.Chain(1, 5);
  bench_.StoreAll(*Open(), keys);
  TierBench other(TierBench::Options{.numerics = NumericsId(6)});
  static_cast<void>(DiskTier::Create(OptionsFor(other)));
  const fs::path segment = Segments()[0];
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (entry.path() != segment.parent_path()) {
      fs::copy(segment, entry.path() / segment.filename());
    }
  }
  ASSERT_EQ(Segments().size(), 2u);
  auto tier = DiskTier::Create(OptionsFor(other));
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_EQ((*tier)->stats().pages, 0u);
  EXPECT_EQ(Segments().size(), 1u);  // it can never be of use there
  EXPECT_EQ(Served(*Open(), keys), 5);
}

TEST_F(DiskTierTest, AnotherClusterKeyFindsNothing) {
  const auto keys = bench_.Chain(1, 5);
  bench_.StoreAll(*Open(), keys);
  TierBench other(TierBench::Options{.cluster_key = "another"});
  auto tier = DiskTier::Create(OptionsFor(other));
  ASSERT_TRUE(tier.ok()) << tier.status();
  EXPECT_EQ((*tier)->stats().pages, 0u);
}

TEST_F(DiskTierTest, AStoreHasOneOwner) {
  auto tier = Open();
  EXPECT_TRUE(absl::IsFailedPrecondition(
      DiskTier::Create(OptionsFor(bench_)).status()));
  tier.reset();
  EXPECT_TRUE(DiskTier::Create(OptionsFor(bench_)).ok());
}

TEST_F(DiskTierTest, ACapOfNothingIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      DiskTier::Create(OptionsFor(bench_, 4 * 1024)).status()));
}

TEST_F(DiskTierTest, FilesStayWithinTheCapAndUsedPagesStay) {
  constexpr uint64_t kCap = 256 * 1024;
  auto tier = Open(kCap);
  const auto hot = bench_.Chain(1, 16);
  bench_.StoreAll(*tier, hot);
  for (uint64_t chain = 100; chain < 300; ++chain) {
    EXPECT_EQ(bench_.Lookup(*tier, hot), 16) << chain;
    bench_.StoreAll(*tier, bench_.Chain(chain, 8));
    EXPECT_LE(BytesOnDisk(), kCap);
    EXPECT_LE(tier->stats().bytes, kCap);
  }
  EXPECT_EQ(Served(*tier, hot), 16);
  EXPECT_EQ(Served(*tier, bench_.Chain(299, 8)), 8);
  EXPECT_EQ(Served(*tier, bench_.Chain(100, 8)), 0);
  const DiskTierStats stats = tier->stats();
  EXPECT_EQ(stats.stored, 1616u);
  EXPECT_GT(stats.copied, 0u);
  EXPECT_LT(stats.copied, stats.stored);  // at most one for each that comes
  // At least half of the space is in use.
  EXPECT_GT(stats.pages * bench_.page_bytes(), kCap / 2);
  tier.reset();
  tier = Open(kCap);
  EXPECT_EQ(Served(*tier, hot), 16);
}

TEST_F(DiskTierTest, ALowerCapHoldsFromTheStart) {
  for (uint64_t chain = 0; chain < 50; ++chain) {
    bench_.StoreAll(*Open(), bench_.Chain(chain, 8));
  }
  EXPECT_GT(BytesOnDisk(), 200u * 1024);
  auto tier = Open(128 * 1024);
  EXPECT_LE(BytesOnDisk(), 128u * 1024);
  EXPECT_GT(tier->stats().pages, 0u);
  EXPECT_EQ(Served(*tier, bench_.Chain(49, 8)), 8);
}

TEST_F(DiskTierTest, WhatBearsASegmentsNameAndIsNoneIsPassedBy) {
  const auto keys = bench_.Chain(1, 3);
  bench_.StoreAll(*Open(), keys);
  const fs::path folder = Segments()[0].parent_path();
  fs::create_directory(folder / "0000000000000007.pkv");
  ASSERT_EQ(mkfifo((folder / "0000000000000008.pkv").c_str(), 0600), 0);
  fs::create_symlink(Segments()[0], folder / "0000000000000009.pkv");
  std::ofstream(folder / "000000000000000a.pkv") << "not a segment";
  std::ofstream(folder / "ffffffffffffffff.pkv") << "";
  std::ofstream(folder / "notes.txt") << "mine";
  auto tier = Open();
  EXPECT_EQ(tier->stats().pages, 3u);
  bench_.StoreAll(*tier, bench_.Chain(2, 3));
  EXPECT_EQ(Served(*tier, keys), 3);
  EXPECT_TRUE(fs::exists(folder / "notes.txt"));
}

}  // namespace
}  // namespace penstock
