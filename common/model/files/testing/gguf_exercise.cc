#include "common/model/files/testing/gguf_exercise.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/model/files/gguf_model.h"

namespace penstock {
namespace {

constexpr char kPath[] = "mutated.gguf";

void CheckTensor(const TensorView& tensor, absl::Span<const uint8_t> file) {
  CHECK(tensor.data.data() >= file.data() &&
        tensor.data.data() + tensor.data.size() <= file.data() + file.size())
      << tensor.name;
  std::vector<float> row(tensor.cols());
  for (int64_t i = 0; i < tensor.rows(); ++i) {
    DequantizeRow(tensor, i, absl::MakeSpan(row));
  }
}

void CheckShape(const TensorView& tensor, std::vector<int64_t> shape) {
  CHECK(tensor.shape == shape) << tensor.name;
}

void CheckWeights(const ModelContent& content, absl::Span<const uint8_t> file) {
  const ModelSpec& spec = content.spec;
  CHECK(static_cast<int>(content.weights.layers.size()) == spec.layers);
  CheckShape(content.weights.output, {spec.vocab_size, spec.hidden});
  CheckTensor(content.weights.token_embedding, file);
  CheckTensor(content.weights.output_norm, file);
  CheckTensor(content.weights.output, file);
  for (const LayerWeights& layer : content.weights.layers) {
    CheckShape(layer.q, {spec.q_width(), spec.hidden});
    CheckShape(layer.v, {spec.kv_width(), spec.hidden});
    CheckShape(layer.o, {spec.hidden, spec.q_width()});
    CheckShape(layer.down, {spec.hidden, spec.ffn});
    for (const TensorView* tensor :
         {&layer.attention_norm, &layer.q, &layer.k, &layer.v, &layer.o,
          &layer.ffn_norm, &layer.gate, &layer.up, &layer.down}) {
      CheckTensor(*tensor, file);
    }
  }
}

void CheckSpec(const ModelSpec& spec) {
  CHECK(spec.vocab_size > 0 && spec.layers > 0 && spec.ffn > 0 &&
        spec.context_length > 0);
  CHECK(spec.kv_heads > 0 && spec.heads % spec.kv_heads == 0);
  CHECK(spec.ropes[0].dimensions > 0 && spec.ropes[0].dimensions % 2 == 0 &&
        spec.ropes[0].dimensions <= spec.head_dim);
  CHECK(spec.norm_epsilon > 0 && spec.ropes[0].base >= 1);
}

void CheckVocabulary(const ModelContent& content) {
  const Vocabulary& vocabulary = content.vocabulary;
  const TokenId size = content.spec.vocab_size;
  CHECK(vocabulary.tokens.size() == static_cast<size_t>(size));
  CHECK(vocabulary.kinds.size() == static_cast<size_t>(size));
  for (TokenId id : {vocabulary.bos, vocabulary.eos, vocabulary.unknown}) {
    CHECK(id >= -1 && id < size);
  }
  for (TokenId id : vocabulary.stop_tokens) CHECK(id >= 0 && id < size);
  for (const TokenMerge& merge : vocabulary.merges) {
    CHECK(vocabulary.tokens[merge.left] + vocabulary.tokens[merge.right] ==
          vocabulary.tokens[merge.result]);
  }
}

}  // namespace

std::optional<ModelError> ExerciseGguf(absl::Span<const uint8_t> file) {
  // Not a vector, whose spare capacity would hide a read past the end.
  auto bytes = std::make_unique<uint8_t[]>(file.size());
  std::copy(file.begin(), file.end(), bytes.get());
  absl::Span<const uint8_t> exact(bytes.get(), file.size());
  absl::StatusOr<ModelContent> content = ReadGgufModel(exact, kPath);
  if (!content.ok()) {
    std::optional<ModelError> error = ModelErrorOf(content.status());
    CHECK(error.has_value()) << content.status().ToString();
    absl::string_view message = content.status().message();
    CHECK(message.substr(0, sizeof(kPath) - 1) == kPath) << message;
    return error;
  }
  CheckSpec(content->spec);
  CheckWeights(*content, exact);
  CheckVocabulary(*content);
  return std::nullopt;
}

}  // namespace penstock
