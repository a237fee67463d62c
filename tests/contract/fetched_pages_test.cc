// KV that comes back from below the pool: the same tokens and the same bits of
// every log-probability as when it was computed, whatever became of the pages.

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/env/random.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kvstore/core/memory_tier.h"
#include "kvstore/core/tier_stack.h"
#include "kvstore/disk/disk_tier.h"
#include "tests/contract/local_cluster.h"
#include "tests/contract/served_model.h"

namespace penstock {
namespace {

constexpr int kPromptTokens = 600;  // over two attention splits
constexpr int kFullBlocks = (kPromptTokens - 1) / kBlockTokens;

struct CountingProbe : EngineProbe {
  void PageFetched(uint64_t bytes) override { ++fetched; }
  void PageNotFetched(absl::StatusCode why) override {
    bad += why == absl::StatusCode::kDataLoss;
  }
  void PageStored(uint64_t bytes) override { ++stored; }
  int fetched = 0, bad = 0, stored = 0;
};

class FetchedPagesTest : public testing::Test {
 protected:
  FetchedPagesTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
  }
  ~FetchedPagesTest() override { std::filesystem::remove_all(folder_); }

  static GenerateRequest Request(uint64_t seed = 1) {
    GenerateRequest request;
    SeededRandom random(seed);
    for (int i = 0; i < kPromptTokens; ++i) {
      request.prompt.push_back(
          static_cast<TokenId>(random.Below(ServedModel().spec().vocab_size)));
    }
    request.sampling.temperature = 0;
    request.sampling.logprobs = 5;
    request.stop.max_tokens = 8;
    request.stop.ignore_eos = true;
    return request;
  }

  LocalClusterOptions Options(Handoff handoff = Handoff::kNone) {
    LocalClusterOptions options;
    options.model = &ServedModel();
    options.handoff = handoff;
    options.engine_probe = &probe_;
    // A tiny model computes faster than anything can be fetched.
    options.engine.cost.prefill_token = absl::Seconds(1);
    options.backend = [](Arena arena, std::function<void()> wake) {
      CpuBackendOptions backend;
      backend.model = &ServedModel();
      backend.arena = arena;
      backend.threads = 2;
      backend.spin = false;
      backend.wake = std::move(wake);
      return CpuBackend::Create(backend);
    };
    return options;
  }
  LocalClusterOptions OverDisk(Handoff handoff = Handoff::kNone) {
    LocalClusterOptions options = Options(handoff);
    options.tier = [this](const WorkerKey& self, TierWorker worker,
                          const Clock* clock) -> std::unique_ptr<KvTier> {
      DiskTier::Options disk{std::move(worker), folder_ / self.name,
                             uint64_t{256} << 20};
      disk.sync = DiskSync::kNever;
      disk.clock = clock;
      auto tier = DiskTier::Create(std::move(disk));
      CHECK(tier.ok()) << tier.status();
      return *std::move(tier);
    };
    return options;
  }

  // One life of the cluster; what the probe counts is of this life.
  LocalResult Serve(LocalClusterOptions options,
                    const GenerateRequest& request = Request()) {
    probe_ = {};
    return LocalCluster(std::move(options)).Serve({request})[0];
  }

  static void ExpectSame(const LocalResult& got, const LocalResult& want) {
    ASSERT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(got.tokens, want.tokens);
    ASSERT_EQ(got.logprobs.size(), want.logprobs.size());
    for (size_t i = 0; i < want.logprobs.size(); ++i) {
      ASSERT_EQ(got.logprobs[i].top.size(), want.logprobs[i].top.size());
      for (size_t k = 0; k < want.logprobs[i].top.size(); ++k) {
        const auto& a = got.logprobs[i].top[k];
        const auto& b = want.logprobs[i].top[k];
        EXPECT_EQ(a.first, b.first);
        EXPECT_EQ(std::memcmp(&a.second, &b.second, sizeof(a.second)), 0)
            << "token " << i << ", rank " << k;
      }
    }
  }

  // Flips one bit in about one of `every` KiB of all that was stored.
  int FlipBits(uint64_t seed, int every) {
    SeededRandom random(seed);
    int flipped = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_)) {
      if (!entry.is_regular_file()) continue;
      const uint64_t size = entry.file_size();
      std::fstream file(entry.path(),
                        std::ios::in | std::ios::out | std::ios::binary);
      for (uint64_t i = 0; i < size / 1024 / every; ++i) {
        const auto at = static_cast<std::streamoff>(random.Below(size));
        file.seekg(at);
        char byte = static_cast<char>(file.get());
        byte ^= static_cast<char>(1 << random.Below(8));
        file.seekp(at);
        file.put(byte);
        ++flipped;
      }
    }
    return flipped;
  }

  std::filesystem::path folder_;
  CountingProbe probe_;
};

TEST_F(FetchedPagesTest, AnotherLifeOfTheWorkerGoesOnFromDisk) {
  const LocalResult computed = Serve(Options());
  const LocalResult stored = Serve(OverDisk());
  ExpectSame(stored, computed);
  EXPECT_EQ(probe_.fetched, 0);
  // The answer filled no further block.
  EXPECT_EQ(probe_.stored, (kPromptTokens + 7) / kBlockTokens);
  const LocalResult fetched = Serve(OverDisk());
  ExpectSame(fetched, computed);
  EXPECT_EQ(probe_.fetched, kFullBlocks);
  EXPECT_EQ(fetched.usage.cached_tokens, kFullBlocks * kBlockTokens);
  EXPECT_EQ(fetched.transfer.decode_prompt_tokens,
            kPromptTokens - kFullBlocks * kBlockTokens);
}

TEST_F(FetchedPagesTest, APrefillWorkerHandsOnWhatItFetched) {
  const LocalResult computed = Serve(Options());
  Serve(OverDisk(Handoff::kInproc));
  // The decode worker lost its store, the prefill worker did not.
  std::filesystem::remove_all(folder_ / "decode");
  const LocalResult fetched = Serve(OverDisk(Handoff::kInproc));
  ExpectSame(fetched, computed);
  EXPECT_EQ(fetched.usage.cached_tokens, kFullBlocks * kBlockTokens);
}

TEST_F(FetchedPagesTest, FlippedBitsNeverMakeAToken) {
  const LocalResult computed = Serve(Options());
  int bad = 0;
  for (int every : {8, 1}) {
    std::filesystem::remove_all(folder_);
    Serve(OverDisk());
    ASSERT_GT(FlipBits(every, every), 0);
    ExpectSame(Serve(OverDisk()), computed);
    EXPECT_LT(probe_.fetched, kFullBlocks) << every;
    bad += probe_.bad;
  }
  EXPECT_GT(bad, 0);
}

TEST_F(FetchedPagesTest, WhatThePoolEvictedComesBackFromMemoryOrDisk) {
  LocalClusterOptions options = OverDisk();
  options.blocks = 60;  // one prompt at a time
  options.tier = [disk = options.tier](const WorkerKey& self, TierWorker worker,
                                       const Clock* clock) {
    std::vector<std::unique_ptr<KvTier>> tiers;
    const uint64_t page = worker.pages.layout().block_bytes() + 512;
    auto memory = MemoryTier::Create({worker, 20 * page});
    CHECK(memory.ok()) << memory.status();
    tiers.push_back(*std::move(memory));
    tiers.push_back(disk(self, std::move(worker), clock));
    return std::make_unique<TierStack>(std::move(tiers));
  };
  std::vector<LocalResult> computed;
  for (uint64_t seed : {1, 2, 3}) {
    computed.push_back(Serve(Options(), Request(seed)));
  }
  probe_ = {};
  LocalCluster cluster(options);
  for (int round = 0; round < 2; ++round) {
    for (uint64_t seed : {1, 2, 3}) {
      ExpectSame(cluster.Serve({Request(seed)})[0], computed[seed - 1]);
    }
  }
  EXPECT_GE(probe_.fetched, 2 * kFullBlocks);
}

}  // namespace
}  // namespace penstock
