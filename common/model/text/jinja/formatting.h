#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/text.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// Python's two ways of formatting. What comes from a text of a message stays
// marked as such. INVALID_ARGUMENT for values that do not fit the format,
// UNIMPLEMENTED naming a conversion that is not known, RESOURCE_EXHAUSTED.

// `format % values`: a tuple gives several, a dict named ones, else it is one.
absl::StatusOr<Text> FormatPercent(const Text& format, const Value& values,
                                   Budget& budget, int line);

// `format.format(...)`.
absl::StatusOr<Value> FormatBraces(const Text& format, const Invocation& call);

}  // namespace penstock::jinja
