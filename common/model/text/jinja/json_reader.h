#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// JSON from outside as a value; all of its text counts as text of messages.
// Keys keep their order; of one given twice the last value holds.
// INVALID_ARGUMENT for what is no JSON, with the offset; RESOURCE_EXHAUSTED for
// more than kMaxJsonValues values, nesting beyond kMaxJsonDepth or an integer
// over 64 bits.
absl::StatusOr<Value> ReadJson(absl::string_view text);

inline constexpr size_t kMaxJsonValues = size_t{1} << 18;
// Leaves room for what a template wraps around it.
inline constexpr int kMaxJsonDepth = 64;

}  // namespace penstock::jinja
