#include "kernels/host/step_runner.h"

#include <utility>
#include <variant>

#include "common/base/check.h"

namespace penstock {

StepRunner::StepRunner(Options options)
    : options_(std::move(options)), thread_([this] { Loop(); }) {
  CHECK(options_.run != nullptr);
}

StepRunner::~StepRunner() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  submitted_.notify_one();
  thread_.join();
}

void StepRunner::Submit(StepPlan plan) {
  CHECK(!in_flight_) << "step " << plan_.step << " is still in flight";
  in_flight_ = true;
  plan_ = std::move(plan);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    has_plan_ = true;
  }
  submitted_.notify_one();
}

std::optional<BackendEvent> StepRunner::Poll() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (events_.empty()) return std::nullopt;
  BackendEvent event = std::move(events_.front());
  events_.pop_front();
  lock.unlock();
  if (std::holds_alternative<StepResult>(event)) in_flight_ = false;
  return event;
}

void StepRunner::Push(BackendEvent event) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    events_.push_back(std::move(event));
  }
  if (options_.wake) options_.wake();
}

void StepRunner::Loop() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      submitted_.wait(lock, [this] { return has_plan_ || stopping_; });
      if (stopping_) return;
      has_plan_ = false;
    }
    StepResult result = options_.run(plan_, [this](int layers_done) {
      Push(StepProgress{plan_.step, layers_done});
    });
    result.step = plan_.step;
    result.plan = std::move(plan_);
    Push(std::move(result));
  }
}

}  // namespace penstock
