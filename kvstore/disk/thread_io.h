#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "kvstore/disk/disk_io.h"

namespace penstock {

// Plain system calls in threads of its own: runs anywhere.
class ThreadIo : public DiskIo {
 public:
  static constexpr int kDefaultThreads = 4;

  explicit ThreadIo(int threads);
  ~ThreadIo() override { Finish(); }

  void Finish() final;

  void Submit(Task task) override;
  Kind kind() const override { return Kind::kThreads; }

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;  // guarded by mutex_
  int running_ = 0;         // guarded by mutex_; a task may submit others
  bool stop_ = false;       // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace penstock
