#pragma once

#include "absl/time/time.h"

namespace penstock {

// SIGTERM and SIGINT as something that the main thread waits for. Made before
// any other thread, so that every thread inherits the blocked mask. One a
// process.
class ShutdownSignal {
 public:
  ShutdownSignal();

  // Returns the signal's number.
  int Wait();

  // As Wait, but 0 when `timeout` passes first.
  int WaitFor(absl::Duration timeout);
};

}  // namespace penstock
