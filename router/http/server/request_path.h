#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace penstock {

// The path of a request's target (RFC 9112, 3.2): of its origin form or its
// absolute form, without query and fragment, percent-decoded. What is no
// percent-encoding stays as it is.
std::string RequestPath(absl::string_view target);

}  // namespace penstock
