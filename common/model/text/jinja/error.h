#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::jinja {

// Errors of one place in a template; lines count from 1.

// INVALID_ARGUMENT: the template is not well formed, or what it does with the
// given messages cannot be done.
absl::Status Failure(int line, absl::string_view what);

// UNIMPLEMENTED: `construct` is Jinja that this build does not know.
absl::Status Unknown(int line, absl::string_view construct);

// RESOURCE_EXHAUSTED: `what` is over a bound.
absl::Status Exhausted(int line, absl::string_view what);

}  // namespace penstock::jinja
