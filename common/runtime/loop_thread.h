#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/runtime/inbox.h"

namespace penstock {

// A thread that owns all state of a single-threaded core: it runs what the
// inbox holds, then the timers that are due, then the tick hook, and sleeps
// until the next deadline, task or wake.
//
// Objects that live on the loop are built before Start, or by a task, and are
// destroyed after Stop, or by a task.
class LoopThread {
 public:
  struct Options {
    std::string name;  // at most 15 bytes: the thread's name
    size_t inbox_capacity = 4096;
  };

  // `clock` outlives the loop.
  LoopThread(const Clock& clock, Options options);
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // Runs after each round of tasks and timers; may be empty. Called once.
  void Start(std::function<void()> tick);

  // What was posted before still runs; then the inbox is closed and the thread
  // joined. Pending timers are forgotten. Idempotent.
  void Stop();

  // Runs `task` on the loop and returns when it is done. Not from the loop
  // itself. Precondition: started, not stopped.
  void RunAndWait(Inbox::Task task);

  // Shared, so that a stream that outlives the loop posts into nothing rather
  // than into freed memory.
  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }
  const Clock& clock() const { return clock_; }
  Timers& timers() { return timers_; }  // loop thread, or before Start

 private:
  void Run();

  const Clock& clock_;
  const Options options_;
  const std::shared_ptr<Inbox> inbox_;
  Timers timers_;
  std::function<void()> tick_;
  bool stopping_ = false;  // set by a task: the loop thread's own
  std::thread thread_;
};

}  // namespace penstock
