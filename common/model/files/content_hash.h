#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/files/load_progress.h"
#include "common/model/files/parallel_for.h"

namespace penstock {

// The fingerprint of a model: XXH3-64 over `salt` and the XXH3-64 of each piece
// of 16 MiB of each file's bytes, files in the given order, their lengths
// included. Never 0.
ContentId HashContent(const std::vector<absl::Span<const uint8_t>>& files,
                      uint64_t salt, const ParallelFor& parallel_for,
                      const LoadProgress& progress);

}  // namespace penstock
