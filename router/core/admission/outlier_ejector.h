#pragma once

#include <map>
#include <string>

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace penstock {

// Takes workers out of one pool whose attempts fail far more often than those
// of the others, for a while, and never more than a share of the pool at once.
// A breaker sees failures in a row; this sees one in two.
class OutlierEjector {
 public:
  struct Options {
    absl::Duration interval = absl::Seconds(10);  // over which it counts
    int min_requests = 10;  // in an interval, to be judged at all
    double min_failure_share = 0.3;
    double times_the_others = 3;  // more often than the rest of the pool fails
    double max_ejected_share = 1.0 / 3;
    absl::Duration eject_for = absl::Seconds(30);  // times how often it was
    absl::Duration max_ejection = absl::Minutes(5);
  };

  explicit OutlierEjector(const Options& options) : options_(options) {}

  void Add(const std::string& worker);     // known ones: begins anew
  void Remove(const std::string& worker);  // unknown: no-op
  // Unknown workers: no-op. True: next() has changed.
  bool Record(const std::string& worker, bool good, Instant now);

  // Judges when an interval is over; ends ejections.
  void Advance(Instant now);
  bool ejected(const std::string& worker) const;
  int ejections() const;
  // When Advance has something to do.
  Instant next() const;

 private:
  struct Tally {
    int good = 0, bad = 0;  // in this interval
    int times = 0;          // ejected, of late
    Instant until;          // ejected
    bool out = false;
  };

  void Judge(Instant now);

  Options options_;
  std::map<std::string, Tally> workers_;
  Instant interval_end_ = Instant::Infinite();  // while nothing is recorded
};

}  // namespace penstock
