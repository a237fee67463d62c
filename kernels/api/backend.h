#pragma once

#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/kv_layout.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// What a backend promises; the conformance suite tests what is claimed here.
struct BackendCaps {
  std::string name;     // "cpu-avx512", "oracle"
  NumericsId numerics;  // equal ids: bit-equal log-probabilities
  // A row's result does not depend on the batch, on chunking or on where its
  // KV came from.
  bool batch_invariant = false;
  int max_rows = 0;             // of one step
  int max_sequences = 0;        // of one step
  bool layer_progress = false;  // StepProgress comes before StepResult
};

using BackendEvent = std::variant<StepProgress, StepResult>;

// Runs steps asynchronously. Owns weights, compute threads or device and
// sampling; raw logits never leave it. Reads and writes KV in the arena it was
// made with. At most one step is in flight. Called from one thread only (the
// engine's); the wake callback given at construction is called from any thread
// when Poll has something new.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendCaps& caps() const = 0;
  virtual const KvLayout& kv_layout() const = 0;

  // Starts a step. Precondition: none is in flight, the plan is within caps and
  // its block table within the arena (CHECKed: the plan is the engine's own).
  virtual void Submit(StepPlan plan) = 0;

  // The next event of the step in flight, in order; nullopt when there is none
  // yet. A StepResult ends the step.
  virtual std::optional<BackendEvent> Poll() = 0;
};

}  // namespace penstock
