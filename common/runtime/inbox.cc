#include "common/runtime/inbox.h"

#include <algorithm>
#include <utility>

namespace penstock {

bool Inbox::PostLocked(Task task) {
  if (closed_) return false;
  tasks_.push_back(std::move(task));
  // The consumer takes all at once, so only the first needs to wake it.
  if (tasks_.size() == 1) changed_.notify_one();
  return true;
}

bool Inbox::TryPost(Task task) {
  std::lock_guard<std::mutex> lock(mutex_);
  return tasks_.size() < capacity_ && PostLocked(std::move(task));
}

bool Inbox::Post(Task task) {
  std::lock_guard<std::mutex> lock(mutex_);
  return PostLocked(std::move(task));
}

void Inbox::Wake() {
  std::lock_guard<std::mutex> lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

std::vector<Inbox::Task> Inbox::Take(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  auto ready = [this] { return !tasks_.empty() || woken_ || closed_; };
  if (timeout == absl::InfiniteDuration()) {
    changed_.wait(lock, ready);
  } else if (timeout > absl::ZeroDuration()) {
    // Bounded, so that adding it to the time of day cannot overflow.
    changed_.wait_for(
        lock, absl::ToChronoNanoseconds(std::min(timeout, absl::Hours(1))),
        ready);
  }
  woken_ = false;
  return std::exchange(tasks_, {});
}

void Inbox::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

}  // namespace penstock
