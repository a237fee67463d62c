#include "common/runtime/load/thread_for.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace penstock {

ParallelFor ThreadFor(int threads) {
  return [threads](int64_t count, const std::function<void(int64_t)>& body) {
    std::atomic<int64_t> next = 0;
    auto work = [&] {
      for (int64_t i = next++; i < count; i = next++) body(i);
    };
    std::vector<std::thread> others;
    const int64_t useful = std::min<int64_t>(threads, count);
    for (int64_t i = 1; i < useful; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
  };
}

}  // namespace penstock
