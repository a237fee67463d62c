#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/id.h"
#include "common/engine/engine_loop.h"
#include "common/engine/engine_probe.h"
#include "common/engine/kept_kv.h"
#include "common/engine/worker_context.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/model/block_hash.h"
#include "common/model/text/tokenizer.h"
#include "common/peer/leg.h"
#include "common/peer/peer.h"
#include "common/peer/worker_report.h"
#include "common/transfer/kv_transport.h"
#include "kernels/api/backend.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

class PrefillRole;
class DecodeRole;
class LoopbackPeers;
class PullSource;
class PullTier;

struct WorkerCoreOptions {
  WorkerKey self;
  WorkerRoles roles;
  std::string model;  // served name
  ContentId content;
  int total_blocks = 0;  // of the arena
  int context_length = 0;
  int vocab_size = 0;
  EngineOptions engine;
  HandoffOptions handoff;
  size_t cache_event_ring = 16384;  // events kept for routers that missed some
};

// Everything outside a worker, as ports. All outlive the WorkerCore. Transports
// and peers may be absent in a worker that never hands off.
struct WorkerCorePorts {
  Backend* backend = nullptr;
  PeerNetwork* peers = nullptr;
  std::vector<KvTransport*> transports;
  KvTier* tier = nullptr;  // below the pool; null: none
  const BlockHasher* hasher = nullptr;
  const Tokenizer* tokenizer = nullptr;
  const Clock* clock = nullptr;
  Timers* timers = nullptr;
  CoreLedger* cores = nullptr;            // shared with others; null: own cores
  EngineProbe* engine_probe = nullptr;    // null: not measured
  HandoffProbe* handoff_probe = nullptr;  // null: not measured
};

// The whole core of a worker: one engine loop, one pool, either role or both.
// What a host (common/worker, a test, the simulator) has to do: feed it legs,
// cancels and peer messages, run Timers, and call Tick until it returns false
// whenever anything happened. Single-threaded; never blocks.
class WorkerCore {
 public:
  // INVALID_ARGUMENT or RESOURCE_EXHAUSTED name what does not fit.
  static absl::StatusOr<std::unique_ptr<WorkerCore>> Create(
      WorkerCoreOptions options, WorkerCorePorts ports);
  ~WorkerCore();

  // Starts a leg; whatever happens to it goes to `sink` (see LegSink), which
  // may be called from inside. `sink` outlives its OnFinished.
  void StartLeg(LegKind kind, LegRequest request, LegSink* sink);

  // Ends a leg at once: its sink gets OnFinished(CANCELLED) from inside this
  // call if it has not finished yet. Unknown legs are a no-op.
  void CancelLeg(LegKind kind, TransferId transfer);

  // Where the control plane delivers.
  PeerListener* peer_listener();

  // One round: transports, backend, engine. True when something happened and
  // another round is due at once.
  bool Tick();

  // No leg, no sequence, no transfer. Of what is kept for the next attempt of
  // a request see keeps().
  bool idle() const;
  // KV of a request that another worker goes on with is here, under its lease.
  bool keeps() const { return !kept_.empty(); }

  // New legs and offers are refused with kDraining, but for those of requests
  // that are kept here. Running requests of one answer end at their next token
  // with kDraining, their KV kept; others finish.
  void BeginDrain();

  WorkerInfo Info() const;  // without addresses, which the host knows
  WorkerLoad Load() const;
  CacheEventLog& cache_events();
  const BlockPool& pool() const;
  // All that the core keeps of its pool.
  void CountBlocks(BlockCensus& census) const;
  // INTERNAL names a table that has outgrown what it may hold.
  absl::Status CheckBounds() const;
  // Attempts whose tokens are made here now.
  std::vector<TransferId> Generating() const;
  // For a host that keeps blocks from being used.
  BlockPool& pool() { return pool_; }

 private:
  WorkerCore(WorkerCoreOptions options, WorkerCorePorts ports);
  class Dispatcher;

  // Below the pool: the host's tier, and other workers' pools.
  KvTier* MakeTier();
  // Tells the tier who is believed to have the request's KV.
  void TakeHint(const LegRequest& request);
  // Hands what transports have to whom it concerns.
  bool PumpTransports();
  // Whether KV of the request waits here for its next leg, or is about to.
  bool Keeps(RequestId request) const;

  WorkerCoreOptions options_;
  WorkerCorePorts ports_;
  EngineProbe null_engine_probe_;
  HandoffProbe null_handoff_probe_;
  BlockPool pool_;
  CacheEventLog cache_log_;
  PrefixCache cache_;
  KeptKv kept_;
  std::unique_ptr<BatchPolicy> policy_;
  WorkerContext context_;
  PullTier* pull_ = nullptr;       // null: there are no peers
  std::unique_ptr<KvTier> below_;  // the stack that owns it
  EngineLoop engine_;
  std::unique_ptr<LoopbackPeers> peers_;
  std::unique_ptr<PullSource> source_;
  std::unique_ptr<PrefillRole> prefill_;
  std::unique_ptr<DecodeRole> decode_;
  std::unique_ptr<Dispatcher> dispatcher_;
  bool draining_ = false;
};

}  // namespace penstock
