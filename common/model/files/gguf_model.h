#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/files/file_bytes.h"
#include "common/model/files/gguf_reader.h"
#include "common/model/files/model_content.h"
#include "common/model/files/model_family.h"

namespace penstock {

// A whole GGUF model from memory: the pure core of OpenModelFile, without the
// operating system. The files are the parts of a split model in order, or its
// only one. The first one's stem names the model where it has no name. Every
// error carries a ModelError. Sets all but `spec.content`.
absl::StatusOr<ModelContent> ReadGgufModel(absl::Span<const FileBytes> files);
// The same for a model in one file.
absl::StatusOr<ModelContent> ReadGgufModel(absl::Span<const uint8_t> file,
                                           const std::string& path);

// Its parts, in order.

absl::StatusOr<const ModelFamily*> ReadGgufFamily(const GgufReader& reader);

absl::StatusOr<ModelSpec> ReadGgufSpec(const GgufReader& reader,
                                       const TensorMap& tensors,
                                       const ModelFamily& family);

}  // namespace penstock
