#include "common/model/files/gguf_model.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/model/files/gguf_vocabulary.h"
#include "xxhash.h"

namespace penstock {
namespace {

// 0 means "no id", so it is moved away from.
ContentId ContentOf(absl::Span<const uint8_t> file) {
  uint64_t hash = XXH3_64bits(file.data(), file.size());
  return ContentId(hash == 0 ? 1 : hash);
}

}  // namespace

absl::StatusOr<ModelContent> ReadGgufModel(absl::Span<const uint8_t> file,
                                           const std::string& path) {
  ASSIGN_OR_RETURN(GgufReader reader, GgufReader::Parse(file, path));
  ModelContent content;
  ASSIGN_OR_RETURN(content.spec, ReadGgufSpec(reader));
  // Before the vocabulary is copied: the embedding's rows bound its size.
  ASSIGN_OR_RETURN(content.weights, BindGgufWeights(reader, content.spec));
  ASSIGN_OR_RETURN(content.vocabulary, ReadGgufVocabulary(reader));
  ASSIGN_OR_RETURN(absl::string_view chat_template,
                   reader.metadata().StringOr("tokenizer.chat_template", ""));
  content.chat_template = std::string(chat_template);
  content.spec.content = ContentOf(file);
  return content;
}

}  // namespace penstock
