#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

struct ThreadPoolOptions {
  int threads = 1;  // that take part in a region, the caller of Run included
  // Whether a waiting thread spins for long before it sleeps. It wins
  // microseconds per wait, and must be off where the workers of the host
  // together have more threads than it has cores: there a spinning thread
  // takes the core from the one it waits for. When off it still looks around
  // for less time than going to sleep takes.
  bool spin = true;
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

  int threads() const { return threads_; }

  // Calls `body` once on every thread and returns when all have returned.
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

  const int threads_;
  const int most_rounds_;
  // Rounds at the next barrier. Fewer after waits that ended in sleep: then a
  // neighbour has a core of ours, and spinning would only keep the other.
  std::atomic<int> rounds_;
  std::mutex one_region_;
  const Body* body_ = nullptr;
  bool stopping_ = false;
  // Separate cache lines: each is written by one side and polled by the other.
  alignas(64) std::atomic<uint32_t> region_{0};
  alignas(64) std::atomic<uint32_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> phase_{0};
  std::vector<std::thread> workers_;
};

}  // namespace penstock
