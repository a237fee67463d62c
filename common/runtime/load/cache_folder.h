#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace penstock {

// The folder that --weights-cache names: `option` itself, none (empty) for
// "off", and for "auto" penstock in $XDG_CACHE_HOME or else in ~/.cache; none
// when neither variable holds an absolute path.
std::string WeightsCacheFolder(absl::string_view option);

}  // namespace penstock
