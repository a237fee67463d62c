#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {

// The paths of all parts of a split GGUF model, given that of the first:
// NAME-00001-of-00003.gguf and so on. A path of any other form is the only
// part.
std::vector<std::string> GgufPartPaths(absl::string_view path);

// Whether it is a part of a split model, but not the first.
bool IsLaterGgufPart(absl::string_view path);

// What a model is called that is given by its path: the folder's name, or the
// file's without ".gguf" and the number of its part.
std::string ModelNameOf(absl::string_view path);

}  // namespace penstock
