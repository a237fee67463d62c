#pragma once

#include "absl/strings/string_view.h"

namespace penstock {

// Whether `text` is well-formed UTF-8 (Unicode 15, table 3-7): no overlong
// forms, no surrogates, nothing beyond U+10FFFF.
bool IsUtf8(absl::string_view text);

}  // namespace penstock
