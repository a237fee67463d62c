#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/engine/engine_probe.h"
#include "common/engine/sequence.h"
#include "common/env/clock.h"
#include "common/schedule/batch_policy.h"
#include "kernels/api/backend.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/prefix_cache.h"

namespace penstock {

struct EngineOptions {
  int max_rows = 512;       // token budget of a step; capped by the backend
  int max_sequences = 64;   // in a step; capped by the backend
  int prefill_chunk = 256;  // rows of one prefill in a step
  int max_waiting = 512;    // sequences that may queue
  int watermark_blocks = 1;
};

// What happens to one sequence. Called on the engine thread from inside Tick;
// may call Add and Remove of any sequence.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;
  // Its first rows are about to be computed.
  virtual void OnScheduled() {}
  // KV of positions below `computed` is complete in the sequence's blocks.
  virtual void OnComputed(int computed) {}
  // A token was made. When `delivery.finish` is set, or the sequence was added
  // with hold_after_tokens and has made that many, it is parked: it keeps its
  // blocks and computes nothing more until Remove.
  virtual void OnToken(const TokenDelivery& delivery) = 0;
  // The backend failed a step that it was part of. It is parked.
  virtual void OnFailed(const absl::Status& status) = 0;
};

struct EngineLoad {
  int waiting = 0;
  int running = 0;
  int queued_tokens = 0;  // to prefill
  absl::Duration step_time;
};

// Continuous batching over one backend: drains its events, asks the policy,
// submits, emits. Owns every Sequence that was added. Never blocks.
// Single-threaded.
class EngineLoop {
 public:
  struct Ports {
    Backend* backend = nullptr;
    BlockPool* pool = nullptr;
    PrefixCache* cache = nullptr;
    const BatchPolicy* policy = nullptr;
    const BlockHasher* hasher = nullptr;
    const Clock* clock = nullptr;
    EngineProbe* probe = nullptr;
  };
  EngineLoop(EngineOptions options, Ports ports);
  ~EngineLoop();

  // Queues a sequence, or lets one that holds blocks (a committed handoff) join
  // the batch. `listener` lives until Remove. RESOURCE_EXHAUSTED: the queue is
  // full (kQueueFull), or the request can never fit the pool (kKvTooSmall).
  absl::StatusOr<SequenceId> Add(std::unique_ptr<Sequence> sequence,
                                 SequenceListener* listener,
                                 int hold_after_tokens = 0);

  // Takes a sequence out, with its blocks; its listener is not called again.
  // While a step that it is part of is in flight its blocks stay held besides.
  // Null for an unknown id.
  std::unique_ptr<Sequence> Remove(SequenceId id);

  // Null for an unknown id. Valid until the next call that changes the engine.
  Sequence* Find(SequenceId id);

  // Blocks for an arriving handoff: evicts cached ones if needed, keeps the
  // watermark. nullopt: not now.
  std::optional<std::vector<BlockHold>> TryReserve(int count);

  // Whether `tokens` positions can ever fit the pool: kKvTooSmall if not.
  absl::Status CheckFits(int tokens) const;

  // Polls the backend and submits the next step. True when either did anything.
  bool Tick();

  // A sequence is here, or a step still uses blocks of one that was.
  bool busy() const { return in_flight_ || !entries_.empty(); }
  EngineLoad load() const;

 private:
  struct Entry {
    std::unique_ptr<Sequence> sequence;
    SequenceListener* listener = nullptr;
    int hold_after_tokens = 0;
    int made_here = 0;  // tokens made by this engine
    bool running = false;
    bool parked = false;
    bool scheduled = false;
    Instant queued_at;
  };
  struct PlannedRows {
    SequenceId id;
    int rows = 0;
    int sample = -1;  // index into the step's samples
  };

  bool DrainBackend();
  bool SubmitNext();
  EngineView View() const;
  void Preempt(Entry& entry);
  void Admit(Entry& entry);
  bool GrowBlocks(Entry& entry, int positions, StepPlan& plan);
  void AddRows(SequenceId id, Entry& entry, int rows, StepPlan& plan);
  std::optional<std::vector<BlockHold>> Allocate(int count);
  void FinishStep(const StepResult& result);
  void FinishRows(const PlannedRows& planned, const StepResult& result);
  void Publish(Sequence& sequence);

  EngineOptions options_;
  Ports ports_;
  std::map<SequenceId, Entry> entries_;
  uint64_t next_id_ = 1;
  uint64_t next_step_ = 1;
  bool in_flight_ = false;
  Instant submitted_at_;
  std::vector<PlannedRows> planned_;
  // Blocks of sequences removed while the step in flight uses them.
  std::vector<BlockHold> until_step_ends_;
  absl::Duration step_time_;
};

}  // namespace penstock
