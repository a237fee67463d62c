#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/model/block_hash.h"
#include "common/model/kv_layout.h"
#include "common/transfer/page_faults.h"
#include "kernels/api/arena.h"

namespace penstock {

// What every transport needs from its worker.
struct TransportOptions {
  // This worker: its stable name and its incarnation.
  WorkerKey self;
  // Outlives the transport.
  Arena arena;
  KvLayout layout;
  // Made from the cluster key: signs headers and authorises connections.
  BlockHasher hasher{HashSecret("")};
  // Called from any thread, without a lock held, when a Poll or a Revoke has
  // something new; must not call the transport. Null: nobody waits.
  std::function<void()> wake;
  // Thread-safe; outlives the transport.
  const Clock* clock = nullptr;
  // 64 bits that nobody can guess, for access keys and nonces; any thread.
  std::function<uint64_t()> entropy;
  // Tests only; outlives the transport.
  PageFaults* faults = nullptr;
};

}  // namespace penstock
