#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/invocation.h"

namespace penstock::jinja {

// The time of the call's world as Python's strftime writes it in the C locale.
// UNIMPLEMENTED names a directive that is not known. Precondition: the world
// knows the time.
absl::StatusOr<Value> Strftime(const Text& format, const Invocation& call);

}  // namespace penstock::jinja
