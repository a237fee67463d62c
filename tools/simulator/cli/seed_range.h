#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {

// Seeds first to last, both included.
struct SeedRange {
  uint64_t first = 1;
  uint64_t last = 1;

  uint64_t count() const { return last - first + 1; }
};

// "7", or "1..200". INVALID_ARGUMENT otherwise.
absl::StatusOr<SeedRange> ParseSeedRange(absl::string_view text);

}  // namespace penstock
