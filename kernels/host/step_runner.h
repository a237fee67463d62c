#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/api/backend.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// The thread behind an asynchronous backend: runs one step at a time and keeps
// its events until they are polled. Submit and Poll are called from one
// thread; `run` and `wake` are called from the runner's, without a lock held.
class StepRunner {
 public:
  // Tells the poller that KV of layers [0, layers_done) is complete.
  using Progress = std::function<void(int layers_done)>;
  // Runs a step to its end. The result takes the plan back to the poller.
  using RunStep =
      std::function<StepResult(const StepPlan& plan, const Progress& progress)>;

  struct Options {
    RunStep run;
    std::function<void()> wake;  // may be null; called after each new event
  };

  explicit StepRunner(Options options);
  // Waits for a step that is running, drops its events and joins the thread.
  ~StepRunner();
  StepRunner(const StepRunner&) = delete;
  StepRunner& operator=(const StepRunner&) = delete;

  // Precondition: no step is in flight (CHECKed): none was submitted since the
  // last StepResult that Poll returned.
  void Submit(StepPlan plan);

  // The next event of the step in flight, in order; nullopt: none yet.
  std::optional<BackendEvent> Poll();

 private:
  void Loop();
  void Push(BackendEvent event);

  const Options options_;
  bool in_flight_ = false;  // the caller's thread only
  StepPlan plan_;           // the runner's from Submit to its StepResult

  std::mutex mutex_;
  std::condition_variable submitted_;
  bool has_plan_ = false;            // guarded by mutex_
  bool stopping_ = false;            // guarded by mutex_
  std::deque<BackendEvent> events_;  // guarded by mutex_
  std::thread thread_;               // last: starts when all else is ready
};

}  // namespace penstock
