#include "tests/contract/tier_makers.h"

#include <utility>

#include "common/base/check.h"
#include "kvstore/core/memory_tier.h"
#include "kvstore/core/tier_stack.h"
#include "kvstore/disk/disk_tier.h"

namespace penstock {
namespace {

std::unique_ptr<KvTier> MakeMemory(TierBench& bench, const std::string&,
                                   uint64_t max_bytes) {
  auto tier = MemoryTier::Create({bench.worker(), max_bytes});
  CHECK(tier.ok()) << tier.status();
  return *std::move(tier);
}

// Never synced: what reaches the device is of no matter here.
TierMaker Disk(const std::string& name, DiskIo::Kind io) {
  return {name,
          [io](TierBench& bench, const std::string& folder,
               uint64_t max_bytes) -> std::unique_ptr<KvTier> {
            DiskTier::Options options{bench.worker(), folder, max_bytes};
            options.io = io;
            options.sync = DiskSync::kNever;
            options.clock = &bench.clock();
            auto tier = DiskTier::Create(std::move(options));
            if (absl::IsUnavailable(tier.status())) return nullptr;
            CHECK(tier.ok()) << tier.status();
            return *std::move(tier);
          }};
}

// Memory for a few pages over a disk for all.
std::unique_ptr<KvTier> MakeStack(TierBench& bench, const std::string& folder,
                                  uint64_t max_bytes) {
  std::vector<std::unique_ptr<KvTier>> tiers;
  tiers.push_back(MakeMemory(bench, folder, 8 * bench.page_bytes()));
  tiers.push_back(
      Disk("Disk", DiskIo::Kind::kThreads).make(bench, folder, max_bytes));
  return std::make_unique<TierStack>(std::move(tiers));
}

}  // namespace

std::vector<TierMaker> TierMakers() {
  return {{"Memory", MakeMemory},
          Disk("DiskUring", DiskIo::Kind::kUring),
          Disk("DiskThreads", DiskIo::Kind::kThreads),
          {"Stack", MakeStack, /*forgets=*/false}};
}

}  // namespace penstock
