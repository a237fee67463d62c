#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/ast.h"

namespace penstock::jinja {

// Parses a whole template. Errors name the line: INVALID_ARGUMENT for what is
// no Jinja, UNIMPLEMENTED naming a construct that is not known,
// RESOURCE_EXHAUSTED for a source or nesting beyond the bounds.
absl::StatusOr<Body> Parse(absl::string_view source);

}  // namespace penstock::jinja
