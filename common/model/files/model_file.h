#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/files/load_progress.h"
#include "common/model/files/parallel_for.h"
#include "common/model/files/tensor_view.h"
#include "common/model/model_spec.h"
#include "common/model/vocabulary.h"

namespace penstock {

// A tensor without a name is absent: the layer does without it. Shapes are
// [out, in]; norms and biases are vectors.

// Latent attention; widths as in LatentAttentionSpec. Queries come from
// LayerWeights::q ([heads * query_dim, hidden]), or from query_down and
// query_up.
struct LatentWeights {
  TensorView query_down;  // [query_rank, hidden]
  TensorView query_norm;  // [query_rank]
  TensorView query_up;    // [heads * query_dim, query_rank]
  TensorView kv_down;     // [latent + rotated_dim, hidden]
  TensorView kv_norm;     // [latent]
  // For each head: the plain part of a query into the latent's space, and an
  // attended latent into the head's value.
  std::vector<TensorView> query_latent;  // each [latent, plain_dim]
  std::vector<TensorView> value_up;      // each [value_dim, latent]
};

// A mixture of experts; widths as in ExpertSpec.
struct ExpertWeights {
  TensorView router;                  // [count, hidden]
  TensorView choice_bias;             // [count], enters the choice only
  std::vector<TensorView> gate, up;   // each [ExpertSpec::ffn, hidden]
  std::vector<TensorView> down;       // each [hidden, ExpertSpec::ffn]
  TensorView shared_gate, shared_up;  // [shared_ffn, hidden]
  TensorView shared_down;             // [hidden, shared_ffn]
};

// Tensors of one transformer block.
struct LayerWeights {
  TensorView attention_norm;       // of the block's input
  TensorView q, q_bias;            // [q_width, hidden], [q_width]
  TensorView k, k_bias;            // [kv_width, hidden], [kv_width]
  TensorView v, v_bias;            // [value_width, hidden], [value_width]
  TensorView q_norm, k_norm;       // as ModelSpec::qk_norm says
  TensorView o, o_bias;            // [hidden, attended_width], [hidden]
  TensorView attention_post_norm;  // of what attention adds to the residual
  TensorView ffn_norm;
  TensorView gate, up;  // [ffn, hidden]; of dense layers
  TensorView down;      // [hidden, ffn]
  TensorView ffn_post_norm;
  LatentWeights latent;
  ExpertWeights experts;
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

struct ModelFileOptions {
  // Matrices are stored as this type when they are read, whatever the file has
  // (one that QuantizeRow makes); those whose rows are not whole blocks, norms,
  // biases and routers stay. Nothing: all stay, and nothing is copied.
  std::optional<TensorType> weights = std::nullopt;
  // False: only the content id is as if they were of that type. For those that
  // read no weights, such as a router.
  bool convert = true;
  ParallelFor parallel_for = SerialFor;
  LoadProgress progress = nullptr;
};

// Opens and checks a model: a GGUF v2 or v3 file, the first file of one that
// was split (NAME-00001-of-00003.gguf), or a Hugging Face folder. All of it is
// hostile input: every count, offset, length, type and shape is checked before
// use. Errors name the path and the field: NOT_FOUND, INVALID_ARGUMENT (not a
// model, corrupt, truncated), UNIMPLEMENTED (architecture, tensor type or
// tokenizer that this build does not know, by name).
absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(
    const std::string& path, const ModelFileOptions& options = {});

}  // namespace penstock
