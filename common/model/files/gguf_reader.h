#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/files/gguf_metadata.h"
#include "common/model/files/model_error.h"
#include "common/model/files/tensor_view.h"

namespace penstock {

// The container of a GGUF v2 or v3 file: metadata and tensors, each checked to
// lie within the file, whole and apart from the others. Knows nothing of model
// families. Holds views into the file's bytes, which must outlive it.
// Immutable.
class GgufReader {
 public:
  // `path` is for messages only. Fails with a ModelError, the container's part
  // of them.
  static absl::StatusOr<GgufReader> Parse(absl::Span<const uint8_t> file,
                                          std::string path);

  uint32_t version() const { return version_; }
  const GgufMetadata& metadata() const { return metadata_; }
  const ModelErrorMaker& errors() const { return errors_; }

  const TensorMap& tensors() const { return tensors_; }
  // Null when the file has no such tensor.
  const TensorView* FindTensor(absl::string_view name) const;

 private:
  GgufReader(uint32_t version, ModelErrorMaker errors, GgufMetadata metadata,
             TensorMap tensors)
      : version_(version),
        errors_(std::move(errors)),
        metadata_(std::move(metadata)),
        tensors_(std::move(tensors)) {}

  uint32_t version_;
  ModelErrorMaker errors_;
  GgufMetadata metadata_;
  TensorMap tensors_;
};

}  // namespace penstock
