#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// How JSON is spelled, by the arguments of Python's json.dumps.
struct JsonStyle {
  absl::optional<std::string> indent;  // one item a line, behind so many of it
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sorted = false;  // by key
  bool ascii = false;   // other characters as escapes
};
inline constexpr int64_t kMaxJsonIndent = 1000;

// `value` as JSON. INVALID_ARGUMENT for what JSON has no form for.
absl::StatusOr<Text> ToJson(const Value& value, const JsonStyle& style,
                            Budget& budget, int line);

}  // namespace penstock::jinja
