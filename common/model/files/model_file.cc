#include "common/model/files/model_file.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/mapped_file.h"
#include "common/model/files/model_content.h"

namespace penstock {
namespace {

// A model whose weights lie in one mapped file.
class MappedModelFile final : public ModelFile {
 public:
  MappedModelFile(MappedFile file, ModelContent content)
      : file_(std::move(file)), content_(std::move(content)) {}

  const ModelSpec& spec() const override { return content_.spec; }
  const ModelWeights& weights() const override { return content_.weights; }
  const Vocabulary& vocabulary() const override { return content_.vocabulary; }
  const std::string& chat_template() const override {
    return content_.chat_template;
  }

 private:
  MappedFile file_;
  ModelContent content_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(
    const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  ASSIGN_OR_RETURN(ModelContent content, ReadGgufModel(file.bytes(), path));
  return std::make_unique<MappedModelFile>(std::move(file), std::move(content));
}

}  // namespace penstock
