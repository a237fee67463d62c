#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/files/model_error.h"
#include "nlohmann/json.hpp"

namespace penstock {

using Json = nlohmann::json;

struct JsonLimits {
  size_t max_bytes = 1 << 20;
  int max_depth = 8;
};

// A JSON object from outside. kJson when the text is anything else, is larger
// or nested deeper than the limits; kDuplicateKey. Memory is bounded by a
// small multiple of the text's size.
absl::StatusOr<Json> ParseJsonObject(absl::string_view text,
                                     const JsonLimits& limits,
                                     const ModelErrorMaker& errors);

}  // namespace penstock
