#pragma once

#include "absl/time/time.h"

namespace penstock {

// How long to wait before a server that has ended is started again: a second,
// and twice as long after each life that was short, so that one that cannot
// live does not keep the machine busy. Value type.
class RestartPause {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(30);
  // A life of this length was a good one: the pauses begin anew.
  static constexpr absl::Duration kGoodLife = absl::Minutes(1);

  // The pause after a life of this length.
  absl::Duration After(absl::Duration life);

 private:
  absl::Duration next_ = kFirst;
};

}  // namespace penstock
