#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace penstock {

// Keeps the client's order of keys.
using ApiJson = nlohmann::ordered_json;

struct JsonBodyLimits {
  int max_depth = 64;                   // of arrays and objects
  size_t max_values = size_t{1} << 20;  // of any kind, in the whole body
};

// The JSON object that a request's body is. INVALID_ARGUMENT (kInvalidField)
// says what is wrong and where: not JSON, not UTF-8, not an object, a key that
// comes twice, or more than the limits allow.
absl::StatusOr<ApiJson> ParseJsonBody(absl::string_view body,
                                      const JsonBodyLimits& limits);
inline absl::StatusOr<ApiJson> ParseJsonBody(absl::string_view body) {
  return ParseJsonBody(body, JsonBodyLimits());
}

// What a client wrote, cut to a length that fits into an error.
std::string ShortForError(absl::string_view text);

// `value` as text. Never fails: texts that are not UTF-8 get U+FFFD.
std::string DumpJson(const ApiJson& value);

}  // namespace penstock
