#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/files/model_error.h"
#include "common/model/files/model_family.h"
#include "common/model/files/model_file.h"
#include "common/model/files/tensor_view.h"
#include "common/model/model_spec.h"

namespace penstock {

// How a format names tensors.
enum class TensorNames { kGguf, kHuggingFace };

struct BoundWeights {
  ModelWeights weights;
  // Bytes of tensors that the file has in another arrangement; the views of
  // `weights` point into these and into the file.
  std::vector<std::unique_ptr<uint8_t[]>> derived;
};

// Finds every tensor of the forward pass, in the shape that `spec` asks for,
// and nothing else: a weight that would be left out is an error. Matrices that
// the file holds fused or stacked become views of their parts. Sets
// `spec.tied_head` where the names are GGUF's; else it says whether the head is
// tied. kMissingTensor, kTensorShape, kUnexpectedTensor.
absl::StatusOr<BoundWeights> BindWeights(const TensorMap& tensors,
                                         TensorNames names,
                                         const ModelFamily& family,
                                         const ModelErrorMaker& errors,
                                         ModelSpec& spec);

}  // namespace penstock
