#include "router/core/hindsight.h"

#include <algorithm>

namespace penstock {

std::optional<absl::Duration> RegretInHindsight(
    const DecisionOutcome& outcome) {
  if (outcome.record == nullptr || !outcome.record->prefill.has_value() ||
      !outcome.first_token.has_value()) {
    return std::nullopt;
  }
  const DecisionRecord::Leg& leg = *outcome.record->prefill;
  // The cheapest first.
  for (const DecisionRecord::Candidate& other : leg.best) {
    if (other.worker == leg.chosen.worker) continue;
    return std::max(absl::ZeroDuration(), *outcome.first_token - other.cost);
  }
  return std::nullopt;
}

}  // namespace penstock
