#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "common/env/timers.h"
#include "tools/simulator/sim_clock.h"

namespace penstock {

// One simulated host: its clock, and the timers and events of the process that
// runs on it. Processes come and go; the host stays. Whatever happens to a
// process happens in Run: the event, then its timers that are due, then
// `settle`. Single-threaded; the world's clock and queue outlive it.
class SimHost {
 public:
  SimHost(std::string name, const Clock* world, Timers* queue, Instant begin);

  const std::string& name() const { return name_; }
  SimClock& clock() { return clock_; }
  // Of the process that runs; precondition: alive.
  Timers& timers() { return *timers_; }

  // A process begins. `settle` runs until it has nothing more to do.
  // Precondition: none runs.
  void Boot(std::function<void()> settle);
  // It is gone, with everything that it had not handled. The timers that it was
  // made with are the caller's to keep until its objects are destroyed.
  std::unique_ptr<Timers> Halt();
  bool alive() const { return timers_ != nullptr; }
  // Processes that have begun so far.
  uint64_t life() const { return life_; }

  // A frozen process handles nothing; once awake, first all that came. As
  // many Wakes as Freezes wake it.
  void Freeze() { ++freezes_; }
  void Wake();
  bool frozen() const { return freezes_ > 0; }

  // Something happens to the process: now, when it wakes, or never, if it dies
  // before.
  void Handle(std::function<void()> event);
  // The same, when it is known to be awake. Not from inside another.
  void Run(absl::FunctionRef<void()> event);

  // The clock was changed: timers may be due at other times of the world.
  void Rearm();

 private:
  void OnAlarm(Instant at);

  const std::string name_;
  const Clock* world_;
  Timers* queue_;
  SimClock clock_;
  std::unique_ptr<Timers> timers_;
  std::function<void()> settle_;
  std::deque<std::function<void()>> inbox_;
  uint64_t life_ = 0;
  int freezes_ = 0;
  Instant armed_ = Instant::Infinite();  // the alarm that counts
};

}  // namespace penstock
