#pragma once

#include <cstdint>

namespace penstock {

// How many threads of a pool are worth using while other processes want the
// same cores. Threads that meet at barriers are as fast as the one that waits
// for its core, so one busy neighbour halves the speed of any number of them,
// and worse where they meet often; to leave it a core costs one part in n.
// Pure: time is what Regions say. One thread.
class ThreadBudget {
 public:
  explicit ThreadBudget(int most) : most_(most), threads_(most) {}

  // Threads of the next region.
  int threads() const { return threads_; }

  // A region of threads() threads took so long, and its threads together were
  // kept from running for so long.
  void Region(int64_t elapsed_ns, int64_t delayed_ns);

 private:
  void Begin(int threads);

  const int most_;
  int threads_;
  bool trying_ = false;  // whether one thread more does better
  int64_t hold_ns_ = kShortestHold;
  // Since the number of threads was last judged.
  int64_t elapsed_ns_ = 0;
  int64_t delayed_ns_ = 0;

  // Some turns of a scheduler.
  static constexpr int64_t kWindow = 30'000'000;
  // Until another thread is tried again; doubles with each failure.
  static constexpr int64_t kShortestHold = 200'000'000;
  static constexpr int64_t kLongestHold = 3'200'000'000;
};

}  // namespace penstock
