#include "kernels/host/thread_pool.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {
namespace {

// About 50 us: longer than the phases of a small step differ by, far shorter
// than a scheduler's time slice.
constexpr int kSpinRounds = 2000;
// About 5 us: a fraction of a sleep and a wake-up. Most waits at a barrier are
// shorter, so without this a small step would be mostly wake-ups.
constexpr int kGlanceRounds = 200;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : threads_(options.threads),
      most_rounds_(options.spin ? kSpinRounds : kGlanceRounds),
      rounds_(most_rounds_) {
  CHECK(threads_ >= 1);
  for (int thread = 1; thread < threads_; ++thread) {
    workers_.emplace_back([this, thread] { WorkerLoop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  region_.fetch_add(1, std::memory_order_release);
  region_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(const Body& body) {
  std::lock_guard<std::mutex> lock(one_region_);
  body_ = &body;
  region_.fetch_add(1, std::memory_order_release);
  region_.notify_all();
  body(0, threads_);
  Barrier();
}

void ThreadPool::Barrier() {
  if (threads_ == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  const uint32_t before = arrived_.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == static_cast<uint32_t>(threads_)) {
    // Reset first: nobody arrives again before seeing the new phase.
    arrived_.store(0, std::memory_order_relaxed);
    phase_.store(phase + 1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  const int rounds = rounds_.load(std::memory_order_relaxed);
  const bool enough = AwaitChange(phase_, phase, rounds);
  const int next = enough ? rounds + rounds / 16 + 1 : rounds / 2;
  rounds_.store(std::clamp(next, kGlanceRounds, most_rounds_),
                std::memory_order_relaxed);
}

bool ThreadPool::AwaitChange(const std::atomic<uint32_t>& word, uint32_t old,
                             int rounds) const {
  for (int round = 0; round < rounds; ++round) {
    if (word.load(std::memory_order_acquire) != old) return true;
    Pause();
  }
  word.wait(old, std::memory_order_acquire);
  return false;
}

void ThreadPool::WorkerLoop(int thread) {
  for (uint32_t seen = 0;; ++seen) {
    AwaitChange(region_, seen, most_rounds_);
    if (stopping_) return;
    (*body_)(thread, threads_);
    Barrier();
  }
}

}  // namespace penstock
