#include "router/core/admission/drain_rate.h"

#include <algorithm>
#include <cmath>

namespace penstock {
namespace {

constexpr double kMemory = 30;   // seconds
constexpr double kEnough = 0.5;  // seconds of looking

}  // namespace

double DrainRate::Decayed(Instant now) const {
  return work_ * std::exp(-absl::ToDoubleSeconds(now - last_) / kMemory);
}

void DrainRate::Add(int64_t work, Instant now) {
  if (!any_) first_ = last_ = now;
  any_ = true;
  work_ = Decayed(now) + static_cast<double>(work);
  last_ = now;
}

std::optional<double> DrainRate::At(Instant now) const {
  if (!any_) return std::nullopt;
  const double seconds = absl::ToDoubleSeconds(now - first_);
  if (seconds < kEnough) return std::nullopt;
  // A steady rate r would have come to this much of r by now.
  const double weight = kMemory * (1 - std::exp(-seconds / kMemory));
  return Decayed(now) / weight;
}

}  // namespace penstock
