// The suite's makers for the shared store: a server of this process, reached
// over gRPC and each transport.

#include <utility>

#include "common/base/check.h"
#include "tests/contract/remote_bench.h"
#include "tests/contract/tier_makers.h"

namespace penstock {
namespace {

// A store of its own, and the tier to it.
class OwnStore : public KvTier {
 public:
  OwnStore(TierBench& bench, TransportKind kind, uint64_t memory_bytes,
           const std::string& disk)
      : store_(StartStore({.memory_bytes = memory_bytes,
                           .disk_directory = disk,
                           .kind = kind})),
        tier_(bench, store_->address(), kind) {}

  TierLookup Lookup(absl::Span<const BlockHash> chain) override {
    return tier_.Lookup(chain);
  }
  TierTicket Fetch(std::vector<TierRead> reads) override {
    return tier_.Fetch(std::move(reads));
  }
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override {
    return tier_.Store(key, from, recompute);
  }
  void Cancel(TierTicket fetch) override { tier_.Cancel(fetch); }
  std::optional<TierCompletion> Poll() override { return tier_.Poll(); }

 private:
  const std::unique_ptr<StoreServer> store_;
  AttachedTier tier_;
};

TierMaker Remote(const std::string& name, TransportKind kind) {
  return {name,
          [kind](TierBench& bench, const std::string&,
                 uint64_t max_bytes) -> std::unique_ptr<KvTier> {
            return std::make_unique<OwnStore>(bench, kind, max_bytes, "");
          }};
}

}  // namespace

std::vector<TierMaker> TierMakers() {
  return {Remote("RemoteShm", TransportKind::kShm),
          Remote("RemoteTcp", TransportKind::kTcp),
          {"RemoteDisk",
           [](TierBench& bench, const std::string& folder,
              uint64_t max_bytes) -> std::unique_ptr<KvTier> {
             // Memory for a few pages only: most come from below.
             return std::make_unique<OwnStore>(bench, TransportKind::kShm,
                                               16 * bench.page_bytes(), folder);
           },
           /*forgets=*/false}};
}

}  // namespace penstock
