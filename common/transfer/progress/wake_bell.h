#pragma once

#include <atomic>
#include <functional>
#include <utility>

namespace penstock {

// Collects news and wakes the engine once for all of it. Any thread.
class WakeBell {
 public:
  explicit WakeBell(std::function<void()> wake) : wake_(std::move(wake)) {}

  // There is something new; the next Ring tells.
  void Mark() { news_.store(true, std::memory_order_release); }

  // Call without a lock held.
  void Ring() {
    if (news_.exchange(false, std::memory_order_acq_rel) && wake_) wake_();
  }

 private:
  const std::function<void()> wake_;
  std::atomic<bool> news_{false};
};

}  // namespace penstock
