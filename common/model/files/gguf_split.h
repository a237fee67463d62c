#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/files/gguf_reader.h"

namespace penstock {

// The tensors of all parts of a model that was split into several files, which
// are given in order; one file that was not split is the common case. Each part
// says which one of how many it is; the first has the metadata. kSplit when
// they do not belong together, kDuplicateTensor.
// Precondition: there is a part.
absl::StatusOr<TensorMap> JoinGgufParts(absl::Span<const GgufReader> parts);

}  // namespace penstock
