#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace penstock {

// The one way into a loop thread: a bounded queue of tasks with many producers
// and one consumer. Thread-safe. A task runs on the consumer's thread, in the
// order of posting.
class Inbox {
 public:
  using Task = absl::AnyInvocable<void()>;

  // `capacity` bounds what TryPost may add.
  explicit Inbox(size_t capacity) : capacity_(capacity) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // False, and the task is dropped, when the inbox is full or closed.
  [[nodiscard]] bool TryPost(Task task);

  // Never refused for want of room: for what must not be lost and of which a
  // source has only a fixed number outstanding, such as the end of a stream.
  // False when closed.
  bool Post(Task task);

  // Ends the current or next wait although there is no task. Coalesces.
  void Wake();

  // Consumer: everything posted so far; waits up to `timeout` for something
  // or a Wake. May return nothing.
  std::vector<Task> Take(absl::Duration timeout);

  // Nothing is accepted from here on; what is queued can still be taken.
  void Close();

 private:
  bool PostLocked(Task task);

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task> tasks_;  // guarded by mutex_
  bool woken_ = false;       // guarded by mutex_
  bool closed_ = false;      // guarded by mutex_
};

}  // namespace penstock
