#include "tools/simulator/sim_host.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

SimHost::SimHost(std::string name, const Clock* world, Timers* queue,
                 Instant begin)
    : name_(std::move(name)),
      world_(world),
      queue_(queue),
      clock_(world, begin) {}

void SimHost::Boot(std::function<void()> settle) {
  CHECK(!alive()) << name_ << " runs already";
  timers_ = std::make_unique<Timers>();
  settle_ = std::move(settle);
  ++life_;
}

std::unique_ptr<Timers> SimHost::Halt() {
  inbox_.clear();
  freezes_ = 0;
  return std::move(timers_);
}

void SimHost::Wake() {
  CHECK(frozen());
  if (--freezes_ > 0) return;
  // As one that reads what came before it looks at anything else.
  Run([&] {
    std::deque<std::function<void()>> waiting = std::exchange(inbox_, {});
    for (std::function<void()>& event : waiting) {
      if (alive()) event();
    }
  });
}

void SimHost::Handle(std::function<void()> event) {
  if (!alive()) return;
  if (frozen()) {
    inbox_.push_back(std::move(event));
  } else {
    Run(event);
  }
}

void SimHost::Run(absl::FunctionRef<void()> event) {
  // It may die of its own deeds.
  const auto goes_on = [this, life = life_] {
    return alive() && life == life_ && !frozen();
  };
  event();
  if (goes_on()) timers_->RunDue(clock_.Now());
  if (goes_on()) settle_();
  if (goes_on()) Rearm();
}

void SimHost::Rearm() {
  if (!alive()) return;
  const Instant next = timers_->NextDeadline();
  if (next == Instant::Infinite()) return;
  const Instant at = clock_.WorldTimeOf(next);
  if (at >= armed_) return;  // looked at again when that alarm rings
  armed_ = at;
  queue_->Schedule(at, [this, at] { OnAlarm(at); });
}

void SimHost::OnAlarm(Instant at) {
  if (at != armed_) return;  // an earlier one took its place
  armed_ = Instant::Infinite();
  // Once awake it looks at its timers anyway.
  if (!alive() || frozen()) return;
  if (timers_->NextDeadline() <= clock_.Now()) {
    Run([] {});
  } else {
    Rearm();
  }
}

}  // namespace penstock
