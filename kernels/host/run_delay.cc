#include "kernels/host/run_delay.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace penstock {

RunDelay::RunDelay()
    : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

RunDelay::~RunDelay() {
  if (file_ >= 0) close(file_);
}

int64_t RunDelay::Nanoseconds() const {
  // Time on a core, time that it waited for one, turns.
  char text[96];
  const ssize_t length =
      file_ < 0 ? -1 : pread(file_, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = '\0';
  long long ran = 0, waited = 0;
  return std::sscanf(text, "%lld %lld", &ran, &waited) == 2 ? waited : 0;
}

}  // namespace penstock
