#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "common/model/files/model_error.h"

namespace penstock {

// What any bytes may do to the parser, for mutation runs and fuzzers: reads
// them as a model from an allocation of exactly their size, and where they are
// accepted, dequantises every row and checks that all that a reader relies on
// holds. Returns the error's code, nothing for an accepted file; dies on a
// broken promise.
std::optional<ModelError> ExerciseGguf(absl::Span<const uint8_t> file);

}  // namespace penstock
