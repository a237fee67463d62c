#include "common/model/files/testing/gguf_exercise.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/testing/weight_exercise.h"

namespace penstock {
namespace {

constexpr char kPath[] = "mutated.gguf";

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
  ExerciseSpec(content->spec);
  ExerciseWeights(*content);
  CheckVocabulary(*content);
  return std::nullopt;
}

}  // namespace penstock
