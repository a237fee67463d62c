#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// What `{{ value }}` writes: Python's str(). UNIMPLEMENTED for values whose
// spelling holds an address, as that of a generator or function does.
absl::StatusOr<Text> Printed(const Value& value, Budget& budget, int line);

// Python's repr(): texts within quotes.
absl::StatusOr<Text> Represented(const Value& value, Budget& budget, int line);

}  // namespace penstock::jinja
