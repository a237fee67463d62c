#include "tools/penstock/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Four chains of additions, so that the sum waits for memory and not for
// itself.
uint64_t Sum(const uint64_t* words, size_t count) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 4 <= count; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += words[i + lane];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

double MeasureReadBandwidth(int threads) {
  constexpr size_t kWords = (size_t{256} << 20) / sizeof(uint64_t);
  constexpr int kPasses = 5;
  const std::vector<uint64_t> words(kWords, 1);
  const size_t share = kWords / threads;
  std::atomic<uint64_t> total = 0;  // keeps the reads from being left out
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = SteadyClock::now();
    std::vector<std::thread> readers;
    for (int i = 0; i < threads; ++i) {
      readers.emplace_back([&, i] {
        total.fetch_add(Sum(words.data() + share * i, share),
                        std::memory_order_relaxed);
      });
    }
    for (std::thread& reader : readers) reader.join();
    const double seconds =
        std::chrono::duration<double>(SteadyClock::now() - start).count();
    best = std::max(best, share * threads * sizeof(uint64_t) / seconds);
  }
  return total.load() == 0 ? 0 : best;
}

int HostThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace penstock
