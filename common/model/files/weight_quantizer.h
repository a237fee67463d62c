#pragma once

#include "common/model/files/load_progress.h"
#include "common/model/files/model_content.h"
#include "common/model/files/parallel_for.h"
#include "common/model/files/tensor_type.h"

namespace penstock {

// Stores the matrices of `content` as `type`, in memory of its own, and points
// its views there. Norms, biases, routers, and matrices whose rows are not a
// whole number of blocks stay as they are.
// Precondition: CanQuantizeTo(type).
void QuantizeWeights(TensorType type, const ParallelFor& parallel_for,
                     const LoadProgress& progress, ModelContent& content);

}  // namespace penstock
