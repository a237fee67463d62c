#pragma once

#include <condition_variable>
#include <mutex>

namespace penstock {

// Lets one thread wait until another has something for it. Rings are counted,
// so none is lost.
class Bell {
 public:
  void Ring() {
    std::lock_guard<std::mutex> lock(mutex_);
    ++rings_;
    rung_.notify_one();
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    rung_.wait(lock, [this] { return rings_ > 0; });
    --rings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rung_;
  int rings_ = 0;
};

}  // namespace penstock
