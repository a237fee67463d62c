#include "common/model/files/model_file.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/content_hash.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/mapped_file.h"
#include "common/model/files/model_content.h"
#include "common/model/files/model_folder.h"
#include "common/model/files/model_path.h"
#include "common/model/files/quantizer.h"
#include "common/model/files/tokenizer_json/tokenizer_json.h"
#include "common/model/files/weight_quantizer.h"

namespace penstock {
namespace {

// A model whose weights lie in mapped files, or were made from them.
class MappedModelFile final : public ModelFile {
 public:
  MappedModelFile(std::vector<MappedFile> files, ModelContent content)
      : files_(std::move(files)), content_(std::move(content)) {}

  const ModelSpec& spec() const override { return content_.spec; }
  const ModelWeights& weights() const override { return content_.weights; }
  const Vocabulary& vocabulary() const override { return content_.vocabulary; }
  const std::string& chat_template() const override {
    return content_.chat_template;
  }

 private:
  std::vector<MappedFile> files_;
  ModelContent content_;
};

// A model and what its views point into.
struct Opened {
  std::vector<MappedFile> files;
  std::vector<absl::Span<const uint8_t>> bytes;  // that are fingerprinted
  ModelContent content;
};

absl::StatusOr<Opened> OpenGguf(const std::string& path) {
  Opened opened;
  std::vector<FileBytes> views;
  for (const std::string& part : GgufPartPaths(path)) {
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(part));
    views.push_back({.bytes = file.bytes(), .path = part});
    opened.bytes.push_back(file.bytes());
    opened.files.push_back(std::move(file));
  }
  ASSIGN_OR_RETURN(opened.content, ReadGgufModel(views));
  return opened;
}

// Tokens that the folder names as ends go with those of the vocabulary.
void AddEndTokens(const std::vector<TokenId>& ends, Vocabulary& vocabulary) {
  std::vector<TokenId>& stops = vocabulary.stop_tokens;
  for (TokenId id : ends) {
    if (vocabulary.eos < 0) vocabulary.eos = id;
    if (std::find(stops.begin(), stops.end(), id) == stops.end()) {
      stops.push_back(id);
    }
  }
}

absl::StatusOr<Opened> OpenFolder(const std::string& path) {
  ASSIGN_OR_RETURN(ModelFolder folder, OpenModelFolder(path));
  Opened opened;
  ASSIGN_OR_RETURN(opened.content, ReadHuggingFaceModel(folder.model));
  const int tokens = opened.content.spec.vocab_size;
  absl::StatusOr<TokenizerContent> tokenizer =
      ReadTokenizerJson({.tokenizer = folder.tokenizer.text(),
                         .config = folder.tokenizer_config.text(),
                         .chat_template = folder.chat_template.text()},
                        tokens);
  if (!tokenizer.ok()) {
    return absl::Status(tokenizer.status().code(),
                        absl::StrCat(path, "/", tokenizer.status().message()));
  }
  opened.content.vocabulary = std::move(tokenizer->vocabulary);
  opened.content.chat_template = std::move(tokenizer->chat_template);
  ASSIGN_OR_RETURN(std::vector<TokenId> ends,
                   ReadEndTokens(folder.model, tokens));
  AddEndTokens(ends, opened.content.vocabulary);
  opened.bytes = folder.AllBytes();
  opened.files = std::move(folder.files);
  return opened;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(
    const std::string& path, const ModelFileOptions& options) {
  if (options.weights) {
    RETURN_IF_ERROR(
        QuantizedTypeOfName(Traits(*options.weights).name).status());
  }
  ASSIGN_OR_RETURN(Opened opened,
                   IsFolder(path) ? OpenFolder(path) : OpenGguf(path));
  const uint64_t salt =
      options.weights ? 1 + Traits(*options.weights).gguf_id : 0;
  opened.content.spec.content =
      HashContent(opened.bytes, salt, options.parallel_for, options.progress);
  if (options.weights && options.convert) {
    QuantizeWeights(*options.weights, options.parallel_for, options.progress,
                    opened.content);
  }
  return std::make_unique<MappedModelFile>(std::move(opened.files),
                                           std::move(opened.content));
}

}  // namespace penstock
