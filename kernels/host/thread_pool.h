#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/host/run_delay.h"
#include "kernels/host/thread_budget.h"

namespace penstock {

struct ThreadPoolOptions {
  int threads = 1;  // that take part in a region, the caller of Run included
  // Whether a waiting thread spins for long before it sleeps. It wins
  // microseconds per wait, and must be off where the workers of the host
  // together have more threads than it has cores: there a spinning thread
  // takes the core from the one it waits for. When off it still looks around
  // for less time than going to sleep takes.
  bool spin = true;
  // Whether a region may have fewer threads while other processes keep ours
  // from running; see ThreadBudget.
  bool yields_cores = true;
};

// Persistent threads for fork-join work. The caller of Run takes part as thread
// 0, so a pool of n threads owns n - 1. Between regions they sleep. Run may be
// called from any thread; regions of different callers run one after another.
class ThreadPool {
 public:
  using Body = std::function<void(int thread, int threads)>;

  explicit ThreadPool(ThreadPoolOptions options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The most that a region has.
  int threads() const { return threads_; }
  // Those of the region that runs, for its threads to ask.
  int active() const { return active_; }

  // From the next region on, no more than this; at least 1.
  void Limit(int threads);

  // Calls `body` once on every thread of the region, with its index and their
  // number, and returns when all have returned.
  // Everything that happened before Run happens before the body, and the body
  // before the return. Precondition: not called from inside a region.
  void Run(const Body& body);

  // Inside a region only, by every thread of it equally often: returns when
  // all have arrived. What any thread did before is visible to all after.
  void Barrier();

 private:
  // Waits until `word` differs from `old`; acquires what was released with it.
  // Looks `rounds` times before it sleeps; true: that was enough.
  bool AwaitChange(const std::atomic<uint32_t>& word, uint32_t old,
                   int rounds) const;
  void WorkerLoop(int thread);
  // Runs the body as `thread` and notes how long that was kept from running.
  void RunPart(int thread);

  // A region's word changes with every region and says how many threads it has,
  // so that one that has no part in some can oversleep them; 0: the end.
  static constexpr uint32_t kActiveBits = 12;
  static constexpr uint32_t ActiveIn(uint32_t word) {
    return word & ((1u << kActiveBits) - 1);
  }
  void Publish(int active);

  // How long a thread has waited for a core.
  struct alignas(64) Delay {
    int64_t region = 0;    // the last that it had a part in
    int64_t total_ns = 0;  // at the end of it
    int64_t ns = 0;  // in it, and since the one before if it had a part in that
  };

  const int threads_;
  const int most_rounds_;
  // Rounds at the next barrier. Fewer after waits that ended in sleep: then a
  // neighbour has a core of ours, and spinning would only keep the other.
  std::atomic<int> rounds_;
  const bool yields_cores_;
  std::atomic<int> limit_;
  std::mutex one_region_;  // guards the next five
  ThreadBudget budget_;
  int64_t regions_ = 0;
  int active_;
  const Body* body_ = nullptr;
  std::vector<Delay> delays_;  // [threads]
  // Separate cache lines: each is written by one side and polled by the other.
  alignas(64) std::atomic<uint32_t> region_{0};
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  std::vector<std::thread> workers_;
};

}  // namespace penstock
