#pragma once

#include <cstdint>

namespace penstock {

// How long the thread that made it has been ready to run while others had its
// core, since the thread began. Linux says so in /proc; elsewhere it is 0.
class RunDelay {
 public:
  RunDelay();
  ~RunDelay();
  RunDelay(const RunDelay&) = delete;
  RunDelay& operator=(const RunDelay&) = delete;

  // From any thread.
  int64_t Nanoseconds() const;

 private:
  int file_ = -1;
};

}  // namespace penstock
