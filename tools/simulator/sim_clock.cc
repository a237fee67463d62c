#include "tools/simulator/sim_clock.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {
namespace {

constexpr int64_t kUnit = int64_t{1} << 32;

}  // namespace

SimClock::SimClock(const Clock* world, Instant begin)
    : world_(world),
      world_base_(world->Now()),
      local_base_(begin.nanos()),
      floor_(begin.nanos()),
      rate_(kUnit) {}

int64_t SimClock::Unclamped() const {
  const __int128 passed = world_->Now().nanos() - world_base_.nanos();
  return local_base_ + static_cast<int64_t>(passed * rate_ / kUnit);
}

Instant SimClock::Now() const {
  return Instant::FromNanos(std::max(floor_, Unclamped()));
}

void SimClock::Jump(absl::Duration by) {
  floor_ = Now().nanos();
  local_base_ = Unclamped() + absl::ToInt64Nanoseconds(by);
  world_base_ = world_->Now();
}

void SimClock::SetRate(double rate) {
  CHECK(rate >= 0.001 && rate <= 1000) << "a clock's rate of " << rate;
  floor_ = Now().nanos();
  local_base_ = Unclamped();
  world_base_ = world_->Now();
  rate_ = static_cast<int64_t>(rate * static_cast<double>(kUnit));
}

Instant SimClock::WorldTimeOf(Instant local) const {
  if (local == Instant::Infinite()) return local;
  if (local <= Now()) return world_->Now();
  const __int128 missing =
      static_cast<__int128>(local.nanos() - local_base_) * kUnit;
  // Rounded up: not before the clock has got there.
  const __int128 world = world_base_.nanos() + (missing + rate_ - 1) / rate_;
  return world >= INT64_MAX ? Instant::Infinite()
                            : Instant::FromNanos(static_cast<int64_t>(world));
}

}  // namespace penstock
