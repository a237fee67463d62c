#pragma once

#include "absl/time/time.h"

namespace penstock {

// The least that serving will take, from what a model predicts for it and from
// how such predictions turned out of late: the model is right in proportion at
// best. A plain value; single-threaded.
class ServiceForecast {
 public:
  // Services of late are the last kWindow to 2 * kWindow. Below kEnough of
  // them nothing is foretold.
  static constexpr int kWindow = 32;
  static constexpr int kEnough = 8;

  // A service was predicted to take so long, and took. Nothing is learned from
  // one that was predicted to take no time.
  void Note(absl::Duration predicted, absl::Duration taken);

  // Zero while too little is known.
  absl::Duration AtLeast(absl::Duration predicted) const;

 private:
  struct Window {
    double least = 0;  // share of what was predicted
    int services = 0;
  };

  Window now_, before_;
};

}  // namespace penstock
