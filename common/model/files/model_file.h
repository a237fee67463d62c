#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/files/tensor_view.h"
#include "common/model/model_spec.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Tensors of one transformer block; shapes are [out, in], norms are [hidden].
struct LayerWeights {
  TensorView attention_norm;
  TensorView q;  // [heads * head_dim, hidden]
  TensorView k;  // [kv_heads * head_dim, hidden]
  TensorView v;  // [kv_heads * head_dim, hidden]
  TensorView o;  // [hidden, heads * head_dim]
  TensorView ffn_norm;
  TensorView gate;  // [ffn, hidden]
  TensorView up;    // [ffn, hidden]
  TensorView down;  // [hidden, ffn]
};

struct ModelWeights {
  TensorView token_embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  TensorView output_norm;
  TensorView output;  // [vocab, hidden]; the embedding's view when tied
};

// One opened model, whatever its format: specification, vocabulary, chat
// template and views of its weights. Owns the mapping that the views point
// into. Immutable and safe to read from any thread.
class ModelFile {
 public:
  virtual ~ModelFile() = default;

  virtual const ModelSpec& spec() const = 0;
  virtual const ModelWeights& weights() const = 0;
  virtual const Vocabulary& vocabulary() const = 0;
  // Jinja source, empty when the file has none.
  virtual const std::string& chat_template() const = 0;
};

// Opens and checks a GGUF v2 or v3 file. The file is hostile input: every
// count, offset, length, type and shape is checked before use. Errors name the
// path and the field: NOT_FOUND, INVALID_ARGUMENT (not a model, corrupt,
// truncated), UNIMPLEMENTED (architecture, tensor type or tokenizer that this
// build does not know, by name).
absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(
    const std::string& path);

}  // namespace penstock
