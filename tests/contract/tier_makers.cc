#include "tests/contract/tier_makers.h"

#include "common/base/check.h"
#include "kvstore/core/memory_tier.h"
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

}  // namespace

std::vector<TierMaker> TierMakers() {
  return {{"Memory", MakeMemory},
          Disk("DiskUring", DiskIo::Kind::kUring),
          Disk("DiskThreads", DiskIo::Kind::kThreads)};
}

}  // namespace penstock
