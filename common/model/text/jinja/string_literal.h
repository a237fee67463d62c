#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::jinja {

// What stands between the quotes of a string literal, with Python's escapes
// replaced. INVALID_ARGUMENT for an escape that is cut short or names no
// character, UNIMPLEMENTED for \N{...}.
absl::StatusOr<std::string> DecodeStringLiteral(absl::string_view body,
                                                int line);

}  // namespace penstock::jinja
