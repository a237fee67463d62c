#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/model/model_spec.h"
#include "kernels/api/arena.h"
#include "kernels/api/backend.h"
#include "kernels/host/step_runner.h"

namespace penstock {

// A backend whose steps take a known time and compute nothing. A token is a
// function of the one before and of its position, so that an answer goes on
// elsewhere as it would have here. Threads as Backend says.
class TimerBackend : public Backend {
 public:
  struct Options {
    ModelSpec spec;  // for the sizes of pages and vocabulary
    KvType kv_type = KvType::kF16;
    Arena arena;                 // outlives the backend; never written to
    std::function<void()> wake;  // any thread, after each event; may be null
    int max_rows = 512;
    int max_sequences = 64;
    absl::Duration step_time = absl::Milliseconds(10);
    absl::Duration row_time = absl::Microseconds(20);  // beside it, each row
  };

  // INVALID_ARGUMENT, naming the option: the arena holds no block; a bound is
  // not positive; a time is negative or not finite.
  static absl::StatusOr<std::unique_ptr<TimerBackend>> Create(Options options);

  // What follows `token` at a position of an answer.
  static TokenId TokenAfter(TokenId token, uint64_t position, int vocab_size);

  const BackendCaps& caps() const override { return caps_; }
  const KvLayout& kv_layout() const override { return layout_; }
  void Submit(StepPlan plan) override;
  std::optional<BackendEvent> Poll() override { return runner_.Poll(); }

 private:
  explicit TimerBackend(Options options);

  StepResult RunStep(const StepPlan& plan) const;

  const Options options_;
  const KvLayout layout_;
  BackendCaps caps_;
  StepRunner runner_;  // last: its thread uses all of the above
};

}  // namespace penstock
