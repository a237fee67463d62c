#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "common/model/block_hash.h"
#include "common/transfer/arena/arena_memory.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/core/store_message.h"
#include "kvstore/disk/disk_tier.h"
#include "kvstore/server/store_core.h"

namespace penstock {

struct StoreHostOptions {
  WorkerKey self;
  std::string cluster_key;
  uint64_t memory_bytes = 0;
  std::string disk_directory;  // empty: none
  uint64_t disk_bytes = 0;
  std::vector<TransportKind> transports;  // best first
  std::string data_listen = "127.0.0.1:0";
  std::string data_advertised_host;
  absl::Duration limit = absl::Seconds(10);
};

// A store without its edge: arena, transports, disk and StoreCore, made when
// the first worker tells what pages it has; until then there is nothing.
// Everything on one loop.
class StoreHost {
 public:
  // `wake` is called from any thread when Tick has something to do. `clock` is
  // thread-safe and outlives the host.
  StoreHost(StoreHostOptions options, const Clock* clock,
            std::function<void()> wake);
  ~StoreHost();

  // Makes the core for the first worker. What ArenaMemory, the transports and
  // DiskTier say; INVALID_ARGUMENT when not one block fits into memory.
  absl::Status Prepare(const StoreHello& hello);

  // Null before the first worker.
  StoreCore* core() { return core_.get(); }
  void Tick();

  DiskTierStats disk_stats() const {
    return disk_ == nullptr ? DiskTierStats() : disk_->stats();
  }
  const TierIdentity& identity() const { return identity_; }

 private:
  const StoreHostOptions options_;
  const Clock* const clock_;
  const std::function<void()> wake_;
  const BlockHasher hasher_;
  TierIdentity identity_;
  std::unique_ptr<ArenaMemory> memory_;
  std::vector<std::unique_ptr<KvTransport>> transports_;
  std::unique_ptr<DiskTier> disk_;
  std::unique_ptr<StoreCore> core_;
};

}  // namespace penstock
