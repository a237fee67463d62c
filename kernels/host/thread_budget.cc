#include "kernels/host/thread_budget.h"

#include <algorithm>

namespace penstock {

void ThreadBudget::Begin(int threads) {
  threads_ = threads;
  elapsed_ns_ = 0;
  delayed_ns_ = 0;
}

void ThreadBudget::Region(int64_t elapsed_ns, int64_t delayed_ns) {
  if (most_ == 1) return;
  elapsed_ns_ += elapsed_ns;
  delayed_ns_ += std::clamp<int64_t>(delayed_ns, 0, elapsed_ns);
  if (elapsed_ns_ < kWindow) return;
  // One thread fewer costs a share of 1 / threads; these lost more.
  const bool lost = threads_ > 1 && delayed_ns_ * threads_ > elapsed_ns_;
  if (lost) {
    if (trying_) hold_ns_ = std::min(2 * hold_ns_, kLongestHold);
    trying_ = false;
    return Begin(threads_ - 1);
  }
  if (trying_) {
    trying_ = false;
    hold_ns_ = kShortestHold;
  }
  if (threads_ == most_) return Begin(threads_);
  if (elapsed_ns_ < hold_ns_) return;
  trying_ = true;
  Begin(threads_ + 1);
}

}  // namespace penstock
