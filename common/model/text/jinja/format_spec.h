#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/text.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// How one value is to be written, in either way of formatting.
struct FormatSpec {
  std::string fill = " ";  // one character
  char align = '\0';       // '<', '>', '^', '=' or none
  char sign = '\0';        // '+', ' ' or none
  bool alternate = false;
  char grouping = '\0';  // ',' or '_' between thousands
  int64_t width = 0;
  int64_t precision = -1;  // -1: not given
  char type = '\0';
};

inline constexpr int64_t kMaxFormatWidth = 10000;

// `text` cut to the precision and padded to the width.
absl::StatusOr<Text> FormatText(const FormatSpec& spec, const Text& text,
                                Budget& budget, int line);

// Types d x X o b n, or none.
absl::StatusOr<Text> FormatInteger(const FormatSpec& spec, int64_t value,
                                   Budget& budget, int line);

// Types e E f F g G %; `general` is the one without a type.
absl::StatusOr<Text> FormatFloat(const FormatSpec& spec, double value,
                                 Budget& budget, int line);

}  // namespace penstock::jinja
