#pragma once

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// `value` as JSON in the spelling of Python's json.dumps(ensure_ascii=False);
// with `indent`, one item a line. INVALID_ARGUMENT for what JSON has no form
// for.
absl::StatusOr<Text> ToJson(const Value& value, absl::optional<int> indent,
                            Budget& budget, int line);

}  // namespace penstock::jinja
