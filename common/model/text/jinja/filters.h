#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// `value | name(...)`. A new filter is a function and a row: in filters.cc, or
// in the file of its kind.
struct Filter {
  absl::string_view name;
  absl::StatusOr<Value> (*apply)(const Value& value, const Invocation& call);
};

// Null when this build does not know the filter.
const Filter* FindFilter(absl::string_view name);

// The filters of each kind, for FindFilter.
absl::Span<const Filter> NumberFilters();
absl::Span<const Filter> SelectionFilters();
absl::Span<const Filter> SequenceFilters();
absl::Span<const Filter> TextFilters();

}  // namespace penstock::jinja
