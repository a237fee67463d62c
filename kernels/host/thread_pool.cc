#include "kernels/host/thread_pool.h"

#include <algorithm>
#include <chrono>

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

using SteadyClock = std::chrono::steady_clock;

}  // namespace

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : threads_(options.threads),
      most_rounds_(options.spin ? kSpinRounds : kGlanceRounds),
      rounds_(most_rounds_),
      yields_cores_(options.yields_cores && threads_ > 1),
      limit_(threads_),
      budget_(threads_),
      active_(threads_),
      delays_(threads_) {
  CHECK(threads_ >= 1 && threads_ < (1 << kActiveBits)) << threads_;
  for (int thread = 1; thread < threads_; ++thread) {
    workers_.emplace_back([this, thread] { WorkerLoop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  Publish(0);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Limit(int threads) {
  CHECK(threads >= 1) << threads;
  limit_ = std::min(threads, threads_);
}

void ThreadPool::Publish(int active) {
  const uint32_t word = region_.load(std::memory_order_relaxed);
  region_.store(((word >> kActiveBits) + 1) << kActiveBits | active,
                std::memory_order_release);
  region_.notify_all();
}

void ThreadPool::Run(const Body& body) {
  std::lock_guard<std::mutex> lock(one_region_);
  const auto start = SteadyClock::now();
  body_ = &body;
  ++regions_;
  active_ = std::min(limit_.load(), budget_.threads());
  if (active_ > 1) Publish(active_);
  RunPart(0);
  Barrier();
  // With fewer threads than the budget has nothing is learnt about it.
  if (!yields_cores_ || active_ != budget_.threads()) return;
  int64_t delayed = 0;
  for (int thread = 0; active_ > 1 && thread < active_; ++thread) {
    delayed += delays_[thread].ns;
  }
  budget_.Region(std::chrono::nanoseconds(SteadyClock::now() - start).count(),
                 delayed);
}

void ThreadPool::RunPart(int thread) {
  const Body& body = *body_;
  if (!yields_cores_ || active_ == 1) return body(thread, active_);
  thread_local const RunDelay run_delay;
  Delay& delay = delays_[thread];
  if (delay.region + 1 != regions_) delay.total_ns = run_delay.Nanoseconds();
  body(thread, active_);
  const int64_t total = run_delay.Nanoseconds();
  delay.ns = total - delay.total_ns;
  delay.region = regions_;
  delay.total_ns = total;
}

void ThreadPool::Barrier() {
  // Not to be read after having arrived: the next region may have begun.
  const int active = active_;
  if (active == 1) return;
  const uint32_t phase = phase_.load(std::memory_order_relaxed);
  const uint32_t before = arrived_.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 == static_cast<uint32_t>(active)) {
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
  int rounds = most_rounds_;
  for (uint32_t seen = 0;;) {
    AwaitChange(region_, seen, rounds);
    seen = region_.load(std::memory_order_acquire);
    const int active = static_cast<int>(ActiveIn(seen));
    if (active == 0) return;
    rounds = thread < active ? most_rounds_ : 0;
    if (thread >= active) continue;
    RunPart(thread);
    Barrier();
  }
}

}  // namespace penstock
