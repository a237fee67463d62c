#include "tests/contract/remote_bench.h"

#include <utility>

#include "common/base/check.h"
#include "common/env/real/entropy.h"

namespace penstock {

std::unique_ptr<StoreServer> StartStore(const TestStore& store) {
  StoreServer::Options options;
  options.listen = store.listen;
  options.host.self = {"store", DrawIncarnation()};
  options.host.cluster_key = "tiers";
  options.host.memory_bytes = store.memory_bytes;
  options.host.disk_directory = store.disk_directory;
  options.host.disk_bytes = store.disk_bytes;
  options.host.transports = {store.kind};
  auto server = StoreServer::Start(std::move(options));
  CHECK(server.ok()) << server.status();
  return *std::move(server);
}

AttachedTier::AttachedTier(TierBench& bench, const std::string& store,
                           TransportKind kind)
    : bench_(bench), loop_(bench.clock(), {.name = "engine"}) {
  RemoteTier::Options options{.worker = bench.worker()};
  options.store = store;
  options.self.name = "worker";
  options.self.incarnation = DrawIncarnation();
  options.transports = {kind};
  options.limit = absl::Seconds(20);
  loop_.Start({});
  loop_.RunAndWait([&] {
    auto tier = RemoteTier::Create(
        std::move(options), {&bench_.clock(), &loop_.timers(), loop_.inbox()});
    CHECK(tier.ok()) << tier.status();
    tier_ = *std::move(tier);
    CHECK(!tier_->Poll().has_value());  // dials
  });
  AwaitAttached(true);
}

AttachedTier::~AttachedTier() {
  loop_.RunAndWait([this] { tier_.reset(); });
  loop_.Stop();
}

void AttachedTier::AwaitAttached(bool attached) {
  bench_.AwaitWakes([&] { return stats().attached == attached; });
}

TierLookup AttachedTier::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup found;
  loop_.RunAndWait([&] { found = tier_->Lookup(chain); });
  return found;
}

TierTicket AttachedTier::Fetch(std::vector<TierRead> reads) {
  TierTicket ticket = 0;
  loop_.RunAndWait([&] { ticket = tier_->Fetch(std::move(reads)); });
  return ticket;
}

TierStored AttachedTier::Store(const TierKey& key, BlockRef from,
                               absl::Duration recompute) {
  TierStored stored;
  loop_.RunAndWait([&] { stored = tier_->Store(key, from, recompute); });
  return stored;
}

void AttachedTier::Cancel(TierTicket fetch) {
  loop_.RunAndWait([&] { tier_->Cancel(fetch); });
}

std::optional<TierCompletion> AttachedTier::Poll() {
  std::optional<TierCompletion> done;
  loop_.RunAndWait([&] { done = tier_->Poll(); });
  return done;
}

RemoteTier::Stats AttachedTier::stats() {
  RemoteTier::Stats stats;
  loop_.RunAndWait([&] { stats = tier_->stats(); });
  return stats;
}

}  // namespace penstock
