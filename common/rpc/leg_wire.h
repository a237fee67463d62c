#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"

namespace penstock {

// The messages of a leg, as bytes. Encoding never fails; decoding checks
// everything (INVALID_ARGUMENT names the field) and refuses a router whose
// protocol range does not meet ours (FAILED_PRECONDITION).

std::string EncodeLegRequest(const LegRequest& request);
absl::StatusOr<LegRequest> DecodeLegRequest(absl::string_view bytes);

struct LegAccepted {};
using LegEvent = std::variant<LegAccepted, TokenFrame>;

std::string EncodeLegEvent(const LegEvent& event);
absl::StatusOr<LegEvent> DecodeLegEvent(absl::string_view bytes);

}  // namespace penstock
