#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/env/random.h"

namespace penstock {

// One random edit: a stretch taken out or repeated elsewhere, one of `words`
// put in once or many times over, or a byte changed.
void EditText(absl::Span<const absl::string_view> words, Random& random,
              std::string& text);

}  // namespace penstock
