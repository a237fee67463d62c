#pragma once

#include "absl/time/time.h"
#include "common/engine/core_ledger.h"
#include "common/engine/engine_probe.h"
#include "common/env/clock.h"
#include "common/env/timers.h"

namespace penstock {

// From the begin of a step of answers, which took `took`, to that of the next
// while another worker of the host computes prompts. Answers of all `workers`
// together take an eighth of the time, or what they need for waits between
// tokens of `longest_gap` at most; zero: however long.
absl::Duration AnswerTurn(absl::Duration took, int workers,
                          absl::Duration longest_gap);

// When a worker's steps may begin, so that it shares cores with others of its
// host: prompts always go on; steps of answers alone take turns with prompts of
// others, and go on at once when there are none. Single-threaded; owned by the
// engine, whose steps it is told of.
class CoreTurns {
 public:
  struct Ports {
    CoreLedger* ledger = nullptr;  // null: the worker has cores of its own
    const Clock* clock = nullptr;
    Timers* timers = nullptr;  // needed with a ledger; ticks follow them
    EngineProbe* probe = nullptr;
  };
  CoreTurns(absl::Duration longest_gap, Ports ports);
  ~CoreTurns();
  CoreTurns(const CoreTurns&) = delete;
  CoreTurns& operator=(const CoreTurns&) = delete;

  bool shares() const { return ports_.ledger != nullptr; }

  // Whether a step of that use may begin now. If not, a timer says when
  // to ask again.
  bool MayBegin(CoreUse use);
  void Began(CoreUse use);
  // The step that runs has got further.
  void Renew();
  void Ended();
  // There is nothing to compute.
  void Idle();

 private:
  void EndWait();

  const absl::Duration longest_gap_;
  const Ports ports_;
  CoreUse use_ = CoreUse::kAnswers;  // of the last step
  bool claimed_ = false;
  Instant began_;        // the last step
  absl::Duration took_;  // the last step of answers; zero: unknown
  bool waits_ = false;
  Instant wait_began_;
  TimerId timer_ = 0;
};

}  // namespace penstock
