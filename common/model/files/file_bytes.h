#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {

// The bytes of a file, and its path for messages. Bytes must outlive what is
// read from them.
struct FileBytes {
  absl::Span<const uint8_t> bytes = {};
  std::string path = {};

  absl::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

}  // namespace penstock
