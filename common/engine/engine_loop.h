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
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/cost/cost_model.h"
#include "common/cost/step_times.h"
#include "common/engine/core_turns.h"
#include "common/engine/engine_probe.h"
#include "common/engine/kept_kv.h"
#include "common/engine/sequence.h"
#include "common/engine/tier_fetch.h"
#include "common/engine/tier_traffic.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/model/token_frame.h"
#include "common/schedule/batch_policy.h"
#include "kernels/api/backend.h"
#include "kvstore/core/block_census.h"
#include "kvstore/core/block_pool.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/core/prefix_cache.h"

namespace penstock {

struct EngineOptions {
  int max_rows = 512;       // token budget of a step; capped by the backend
  int max_sequences = 64;   // in a step; capped by the backend
  int prefill_chunk = 256;  // rows of one prefill in a step
  int max_waiting = 512;    // sequences that may queue
  int watermark_blocks = 1;
  // Steps that decode take so long at most, as far as the prompts beside them
  // can be cut; zero: however long.
  absl::Duration itl_target = {};
  // Pages that go down to the tier at a time.
  int max_tier_stores = 8;
  // A sequence waits so long for a tier that has to ask what it holds.
  absl::Duration tier_answer_timeout = absl::Milliseconds(20);
  // A fetch may take so long, and longer the longer it was predicted to take.
  absl::Duration tier_fetch_timeout = absl::Seconds(1);
  // What steps cost here, before any was measured, and some that were.
  CostCoefficients cost = {};
  std::vector<MeasuredStep> measured = {};
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
  // Log-probabilities of prompt tokens, in order and each once.
  virtual void OnScored(PromptLogprobs part) {}
  // Added with AfterDraw::kGoOn: a token was appended. When `delivery.finish`
  // is set the sequence is parked: it keeps its blocks and computes nothing
  // more until Remove.
  virtual void OnToken(const TokenDelivery& delivery) {}
  // Otherwise: this is what came for Sequence::Draws. Nothing was appended, and
  // the sequence is parked.
  virtual void OnDrawn(SequenceId id, absl::Span<const SampledToken> drawn) {}
  // The backend failed a step that it was part of (kInternal), or nothing may
  // be drawn for it (kInvalidField). It is parked.
  virtual void OnFailed(const absl::Status& status) = 0;
};

// What a sequence does when something was drawn from its last row.
enum class AfterDraw {
  kGoOn,  // appends it and computes the next
  kHold,  // parks and keeps its blocks
  kWait,  // parks for others of its group; its blocks may be taken meanwhile
};

struct AddOptions {
  AfterDraw after_draw = AfterDraw::kGoOn;
  // Another answer of the same request: counts as just as old, and is never
  // refused.
  SequenceId sibling;
};

struct EngineLoad {
  int waiting = 0;
  int running = 0;
  int queued_tokens = 0;  // to prefill
  absl::Duration step_time;
  StepCosts costs = {};  // by the steps so far
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
    KeptKv* kept = nullptr;  // given up to whoever needs room; null: none
    KvTier* tier = nullptr;  // below the pool; null: none
    // With a tier or a ledger; ticks follow what they run.
    Timers* timers = nullptr;
    CoreLedger* cores = nullptr;  // shared with others; null: own cores
  };
  // Precondition: options.cost makes a CostModel.
  EngineLoop(EngineOptions options, Ports ports);
  ~EngineLoop();

  // Queues a sequence, or lets one that holds blocks (a committed handoff) join
  // the batch. `listener` lives until Remove. RESOURCE_EXHAUSTED: the queue is
  // full (kQueueFull).
  absl::StatusOr<SequenceId> Add(std::unique_ptr<Sequence> sequence,
                                 SequenceListener* listener,
                                 AddOptions options = {});

  // Takes a sequence out, with its blocks; its listener is not called again.
  // While a step that it is part of is in flight its blocks stay held besides.
  // Null for an unknown id.
  std::unique_ptr<Sequence> Remove(SequenceId id);

  // Null for an unknown id. Valid until the next call that changes the engine.
  Sequence* Find(SequenceId id);

  // Blocks for an arriving handoff: evicts cached ones and gives up kept ones
  // if needed, keeps the watermark unless the worker is idle but for `held`
  // blocks, which the caller holds alone. nullopt: not now.
  std::optional<std::vector<BlockHold>> TryReserve(int count, int held = 0);

  // Whether `tokens` positions can ever fit the pool: kKvTooSmall if not.
  absl::Status CheckFits(int tokens) const;
  // The same for something that needs `blocks` for them.
  absl::Status CheckFits(int tokens, int64_t blocks) const;

  // Polls tier and backend, submits the next step and sends cold pages down.
  // True when any of it did anything.
  bool Tick();

  // A sequence is here, or a step still uses blocks of one that was, or pages
  // are on their way between the pool and the tier.
  bool busy() const {
    return in_flight_ || !entries_.empty() || !traffic_.idle();
  }
  // Nothing could run at the last look, for want of blocks that others hold
  // (BatchDecision::starved): the earliest request of those that wait.
  std::optional<RequestId> starved() const { return starved_; }
  EngineLoad load() const;
  // Of its sequences, and what a step in flight still needs.
  void CountBlocks(BlockCensus& census) const;
  const EngineOptions& options() const { return options_; }

 private:
  struct Entry {
    std::unique_ptr<Sequence> sequence;
    SequenceListener* listener = nullptr;
    AfterDraw after_draw = AfterDraw::kGoOn;
    uint64_t arrival = 0;  // of the request's first sequence
    bool running = false;
    bool parked = false;
    bool scheduled = false;
    Instant queued_at;
    // Admitted, and waits for the tier to say what it holds; the timer that
    // ends the waiting.
    TimerId asking = 0;
    bool first_look = false;  // what is found counts for the prompt
    std::optional<TierFetch> fetch;
  };
  struct PlannedRows {
    SequenceId id;
    int rows = 0;
    // Into the step's samples and scores.
    int first_sample = 0, samples = 0;
    int first_score = 0, scores = 0;
  };

  bool DrainBackend();
  // False: other workers of the host have the cores for now.
  bool MayBeginStep();
  bool SubmitNext();
  EngineView View() const;
  // Precondition: there is one.
  RequestId EarliestWaiting() const;
  SequenceView ViewOf(SequenceId id, const Entry& entry) const;
  SharedBlocks SharedOf(const Entry& entry) const;
  void Preempt(Entry& entry);
  void Admit(SequenceId id, Entry& entry);
  // The first position that the sequence computes not before pages have come.
  int LimitOf(const Entry& entry) const;
  bool PollTier();
  // Fetches what the tier has of an admitted sequence, if that is quicker than
  // computing it, or waits for the tier to say.
  void AcquireFromTier(SequenceId id, Entry& entry);
  void StartFetch(SequenceId id, Entry& entry, const TierLookup& below);
  void EndAsking(Entry& entry);
  void GiveUpFetch(SequenceId id);
  // Lets go of what is still to come. `entry` keeps its blocks up to the first
  // that has not come.
  void EndFetch(Entry& entry, bool late);
  // Goes on past pages that have come. True when there were some.
  bool SkipFetched(Entry& entry);
  // Measured time of computing a prompt by what cost_ says.
  double Pace() const;
  int ReusableBlocks(const Sequence& sequence) const;
  bool CopiesTail(const Sequence& sequence) const;
  // Blocks that are free now, or would be by eviction and by giving up what is
  // kept.
  int Available() const;
  bool GrowBlocks(Entry& entry, int positions, StepPlan& plan);
  void AddRows(SequenceId id, Entry& entry, int rows, StepPlan& plan);
  std::optional<std::vector<BlockHold>> Allocate(int count);
  void FinishStep(StepResult& result);
  void FinishRows(const PlannedRows& planned, const StepResult& result);
  bool DeliverScores(const PlannedRows& planned, const StepResult& result);
  void DeliverDraws(const PlannedRows& planned, const StepResult& result);
  void Publish(Sequence& sequence);

  EngineOptions options_;
  Ports ports_;
  std::map<SequenceId, Entry> entries_;
  uint64_t next_id_ = 1;
  uint64_t next_step_ = 1;
  bool in_flight_ = false;
  std::optional<RequestId> starved_;
  Instant submitted_at_;
  std::vector<PlannedRows> planned_;
  StepSize planned_work_;
  StepPlan spare_plan_;  // the last one, emptied: the next needs as much memory
  // Blocks of sequences removed while the step in flight uses them, and the
  // sources of its copies.
  std::vector<BlockHold> until_step_ends_;
  absl::Duration step_time_;
  CostModel cost_;
  StepTimes step_times_;
  CoreTurns turns_;
  TierTraffic traffic_;
};

}  // namespace penstock
