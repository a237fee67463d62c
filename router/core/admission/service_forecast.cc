#include "router/core/admission/service_forecast.h"

#include <algorithm>
#include <utility>

namespace penstock {

void ServiceForecast::Note(absl::Duration predicted, absl::Duration taken) {
  if (predicted <= absl::ZeroDuration() || taken < absl::ZeroDuration()) return;
  if (now_.services == kWindow) before_ = std::exchange(now_, {});
  const double share = absl::FDivDuration(taken, predicted);
  now_.least = now_.services == 0 ? share : std::min(now_.least, share);
  ++now_.services;
}

absl::Duration ServiceForecast::AtLeast(absl::Duration predicted) const {
  if (now_.services + before_.services < kEnough) return absl::ZeroDuration();
  double share = now_.services > 0 ? now_.least : before_.least;
  if (before_.services > 0) share = std::min(share, before_.least);
  return predicted * share;
}

}  // namespace penstock
