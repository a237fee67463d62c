#pragma once

#include <optional>

#include "absl/time/time.h"
#include "router/core/decision_record.h"

namespace penstock {

// What a placement lost, as far as it can be told afterwards: by how much its
// first token came later than was predicted of the best prefill worker that was
// not chosen; zero when it came sooner. Nullopt: it was not recorded, there was
// no other, or no first token. Pure.
std::optional<absl::Duration> RegretInHindsight(const DecisionOutcome& outcome);

}  // namespace penstock
