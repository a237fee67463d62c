#pragma once

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace penstock {

// What an attempt says of one of its workers.
enum class Verdict {
  kGood,
  kBad,      // it is to blame
  kNeutral,  // full, cancelled, somebody else's fault
};

// Keeps work from a worker that has failed several times in a row. After a
// while one request may try it; as that goes, so do the others. One for each
// worker and kind of leg.
class CircuitBreaker {
 public:
  enum class State { kClosed, kOpen, kHalfOpen };
  struct Options {
    int failures = 5;                            // in a row
    absl::Duration open_for = absl::Seconds(1);  // doubled each time
    absl::Duration max_open = absl::Seconds(30);
  };

  explicit CircuitBreaker(const Options& options) : options_(options) {}

  State state(Instant now) const;
  // Closed, or half-open without a probe under way.
  bool Allows(Instant now) const;
  // A leg begins on it: the probe, when half-open.
  void OnStarted(Instant now);
  // A leg that began gives something: the probe has told enough.
  void OnProgress(Instant now);
  void OnEnded(Verdict verdict, Instant now);
  // When it becomes half-open; Infinite(): it is not open.
  Instant half_open_at() const { return half_open_at_; }

 private:
  Options options_;
  int failures_ = 0;  // in a row
  int opened_ = 0;    // in a row
  bool closed_ = true;
  bool probing_ = false;
  Instant half_open_at_ = Instant::Infinite();
};

}  // namespace penstock
