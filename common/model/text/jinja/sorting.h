#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// What an item is sorted or told apart by: its attribute (itself when
// `attribute` is null), in lower case where a text's case does not count.
absl::StatusOr<Value> KeyOf(const Value& item, const Value* attribute,
                            bool case_sensitive, const Invocation& call);

// The places of the keys in ascending order (descending when `reverse`), equal
// ones as they stood. INVALID_ARGUMENT where two have no order.
absl::StatusOr<std::vector<size_t>> SortedPlaces(const std::vector<Value>& keys,
                                                 bool reverse,
                                                 const Invocation& call);

}  // namespace penstock::jinja
