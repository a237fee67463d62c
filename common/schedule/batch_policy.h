#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/cost/step_times.h"
#include "common/env/clock.h"

namespace penstock {

// One sequence as the policy sees it.
struct SequenceView {
  SequenceId id;         // grows with arrival: smaller is older
  int priority = 0;      // higher goes first among the waiting
  int length = 0;        // tokens so far: prompt and generated
  int computed = 0;      // leading positions whose KV is in its blocks
  int blocks = 0;        // that it holds
  bool running = false;  // false: waits for its first or next admission
  // Its next position lies in a block that others hold: that one is copied.
  bool copies_tail = false;
  // Computes nothing now, but may be preempted.
  bool parked = false;
  // Computes no position from here on for now: KV of those is being fetched.
  int limit = std::numeric_limits<int>::max();
};

// What a sequence has in common with others.
struct SharedBlocks {
  int cached = 0;  // waiting only: blocks a prefix match would give it
  // Of its blocks, or of `cached` while waiting: those that others hold too.
  // Giving them up frees none, taking them costs none.
  int held = 0;
};

struct EngineView {
  std::vector<SequenceView> sequences;  // oldest first
  int free_blocks = 0;                  // free now or by eviction
  int max_rows = 0;                     // rows a step may have
  int max_sequences = 0;                // sequences a step may have
  int prefill_chunk = 0;     // rows of one sequence's prefill in a step
  int watermark_blocks = 0;  // kept free at admission, for growth
  // Counted when asked, which takes time in proportion to the sequence's
  // length, and changes nothing. Null: none has anything in common.
  std::function<SharedBlocks(SequenceId)> shared;
  // A step that decodes takes this long at most, by what is predicted of its
  // work: prefill chunks beside it are cut to fit. Null: however long.
  absl::Duration step_target;
  std::function<absl::Duration(const StepSize&)> step_time;
};

struct BatchDecision {
  struct Rows {
    SequenceId id;
    int rows = 0;
  };
  std::vector<SequenceId> preempt;  // give their blocks up first
  std::vector<SequenceId> admit;    // waiting ones that start now
  std::vector<Rows> rows;           // of this step, in order
  // Nothing can run: all that could give way has, and those left wait for
  // blocks that are held outside the batch.
  bool starved = false;
};

// Which rows the next step computes. Pure: the same view gives the same
// decision.
class BatchPolicy {
 public:
  virtual ~BatchPolicy() = default;
  virtual BatchDecision Plan(const EngineView& view, Instant now) const = 0;
};

// Continuous batching (Orca, OSDI'22) with chunked prefill (Sarathi-Serve,
// OSDI'24): decode rows first, then prefill chunks in order of arrival, then
// admissions while blocks last. Chunks beside decode rows get what is left of
// the step's time, the first of them a block at least, so that prompts go on.
// The youngest is preempted when blocks run out; the oldest never is, so it
// always completes. When parked ones hold what the waiting need and nothing
// else can run, the youngest of them gives way.
std::unique_ptr<BatchPolicy> MakeContinuousBatching();

}  // namespace penstock
