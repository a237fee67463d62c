#pragma once

#include <vector>

#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/engine/engine_loop.h"
#include "common/engine/engine_probe.h"
#include "common/engine/kept_kv.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/model/block_hash.h"
#include "common/model/kv_layout.h"
#include "common/model/text/tokenizer.h"
#include "common/peer/peer.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/prefix_cache.h"

namespace penstock {

// Bounds and durations of the handoff, the same for both roles. Durations run
// on the local clock from receipt.
struct HandoffOptions {
  absl::Duration lease = absl::Seconds(10);
  // Renewed this often while alive.
  absl::Duration renew_every = absl::Seconds(3);
  // An Offer whose decode leg has not come yet, and the other way round.
  absl::Duration meet_timeout = absl::Seconds(5);
  // Each post of pages has this long, and longer the more bytes it and what is
  // under way before it bring: a link slower than `min_bandwidth` bytes a
  // second counts as broken.
  absl::Duration post_timeout = absl::Seconds(5);
  int64_t min_bandwidth = 8 << 20;
  // A chunk that was announced has to be there within this.
  absl::Duration arrival_timeout = absl::Seconds(1);
  // An engine that cannot go on for want of blocks waits so long for those that
  // are credited to handoffs, then takes them (DecodeRole::RelieveEngine).
  absl::Duration starvation_timeout = absl::Seconds(1);
  int max_chunk_attempts = 4;  // over all transports
  int max_transfers = 1024;    // offers beyond this are rejected
  // Transports this worker may use; empty: all it has.
  std::vector<TransportKind> allowed_transports;
};

// What both roles of a worker share. A bundle of borrowed ports, owned by the
// WorkerCore; everything in it outlives the roles.
struct WorkerContext {
  WorkerKey self;
  ContentId content;
  KvLayout layout;
  NumericsId numerics;
  int context_length = 0;
  HandoffOptions options;
  EngineLoop* engine = nullptr;
  BlockPool* pool = nullptr;
  PrefixCache* cache = nullptr;
  KeptKv* kept = nullptr;
  PeerNetwork* peers = nullptr;
  // Those that `options` allows, preferred first.
  std::vector<KvTransport*> transports;
  const BlockHasher* hasher = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const Clock* clock = nullptr;
  Timers* timers = nullptr;
  HandoffProbe* probe = nullptr;
};

}  // namespace penstock
