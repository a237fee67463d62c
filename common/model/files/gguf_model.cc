#include "common/model/files/gguf_model.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/files/gguf_split.h"
#include "common/model/files/gguf_vocabulary.h"
#include "common/model/files/weight_binder.h"

namespace penstock {

absl::StatusOr<ModelContent> ReadGgufModel(absl::Span<const FileBytes> files) {
  CHECK(!files.empty());
  std::vector<GgufReader> parts;
  for (const FileBytes& file : files) {
    ASSIGN_OR_RETURN(GgufReader part, GgufReader::Parse(file.bytes, file.path));
    parts.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(TensorMap tensors, JoinGgufParts(parts));
  const GgufReader& reader = parts[0];
  ASSIGN_OR_RETURN(const ModelFamily* family, ReadGgufFamily(reader));
  ModelContent content;
  ASSIGN_OR_RETURN(content.spec, ReadGgufSpec(reader, tensors, *family));
  // Before the vocabulary is copied: the embedding's rows bound its size.
  ASSIGN_OR_RETURN(BoundWeights bound,
                   BindWeights(tensors, TensorNames::kGguf, *family,
                               reader.errors(), content.spec));
  content.weights = std::move(bound.weights);
  content.derived = std::move(bound.derived);
  ASSIGN_OR_RETURN(content.vocabulary, ReadGgufVocabulary(reader));
  ASSIGN_OR_RETURN(absl::string_view chat_template,
                   reader.metadata().StringOr("tokenizer.chat_template", ""));
  content.chat_template = std::string(chat_template);
  return content;
}

absl::StatusOr<ModelContent> ReadGgufModel(absl::Span<const uint8_t> file,
                                           const std::string& path) {
  const FileBytes whole = {.bytes = file, .path = path};
  return ReadGgufModel({&whole, 1});
}

}  // namespace penstock
