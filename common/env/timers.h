#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/env/clock.h"

namespace penstock {

using TimerId = uint64_t;  // 0 is never a timer

// All waiting in the core is a timer. Callbacks run on the thread that calls
// RunDue, in order of (deadline, order of scheduling), so that a run is the
// same every time. Single-threaded; owned by the engine or router loop.
class Timers {
 public:
  // A deadline in the past fires at the next RunDue.
  TimerId Schedule(Instant deadline, std::function<void()> callback);

  // Unknown, fired and cancelled ids are a no-op.
  void Cancel(TimerId id);

  // Runs every callback due at `now`, including those that a callback adds
  // with a deadline not after `now`; returns how many ran.
  int RunDue(Instant now);

  // Runs the first callback due at `now`; false: none is.
  bool RunOne(Instant now);

  // Infinite() when none is pending.
  Instant NextDeadline() const;

  size_t size() const { return pending_.size(); }

 private:
  using Key = std::pair<Instant, TimerId>;
  std::map<Key, std::function<void()>> pending_;
  absl::flat_hash_map<TimerId, Instant> deadlines_;
  TimerId next_id_ = 1;
};

}  // namespace penstock
