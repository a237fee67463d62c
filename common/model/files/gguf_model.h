#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/files/gguf_reader.h"
#include "common/model/files/model_content.h"

namespace penstock {

// A whole GGUF model from memory: the pure core of OpenModelFile, without the
// operating system. `path` names the file in messages, and its stem the model
// where the file has no name. Every error carries a GgufError.
absl::StatusOr<ModelContent> ReadGgufModel(absl::Span<const uint8_t> file,
                                           const std::string& path);

// Its parts, in order.

// Everything but the content id.
absl::StatusOr<ModelSpec> ReadGgufSpec(const GgufReader& reader);

// Finds every tensor of the forward pass, in the shape that `spec` asks for,
// and nothing else: a weight that would be left out is an error. Sets
// `spec.tied_head`.
absl::StatusOr<ModelWeights> BindGgufWeights(const GgufReader& reader,
                                             ModelSpec& spec);

}  // namespace penstock
