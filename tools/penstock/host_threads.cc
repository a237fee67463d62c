#include "tools/penstock/host_threads.h"

#include <algorithm>
#include <thread>

namespace penstock {

int HostThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace penstock
