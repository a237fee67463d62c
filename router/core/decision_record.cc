#include "router/core/decision_record.h"

namespace penstock {
namespace {

absl::Duration RegretOf(const DecisionRecord::Leg& leg) {
  return leg.best.empty() ? absl::ZeroDuration()
                          : leg.chosen.cost - leg.best[0].cost;
}

}  // namespace

absl::Duration DecisionRecord::Regret() const {
  return RegretOf(decode) +
         (prefill.has_value() ? RegretOf(*prefill) : absl::ZeroDuration());
}

}  // namespace penstock
