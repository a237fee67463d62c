#include "common/model/files/model_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/content_hash.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/mapped_file.h"
#include "common/model/files/model_content.h"
#include "common/model/files/model_path.h"
#include "common/model/files/quantizer.h"
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

struct OpenedFiles {
  std::vector<MappedFile> files;
  std::vector<FileBytes> views;  // of the files, in order
};

absl::StatusOr<OpenedFiles> OpenAll(const std::vector<std::string>& paths) {
  OpenedFiles opened;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
    opened.views.push_back({.bytes = file.bytes(), .path = path});
    opened.files.push_back(std::move(file));
  }
  return opened;
}

absl::Status CheckWeightType(const ModelFileOptions& options) {
  if (!options.weights || CanQuantizeTo(*options.weights)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "weights of type ", Traits(*options.weights).name,
      " cannot be made on load; ask for one of F32, F16, BF16, Q4_0, Q4_1, "
      "Q5_0, Q5_1, Q8_0, or give a file that has them"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelFile(
    const std::string& path, const ModelFileOptions& options) {
  RETURN_IF_ERROR(CheckWeightType(options));
  ASSIGN_OR_RETURN(OpenedFiles opened, OpenAll(GgufPartPaths(path)));
  ASSIGN_OR_RETURN(ModelContent content, ReadGgufModel(opened.views));
  std::vector<absl::Span<const uint8_t>> bytes;
  for (const FileBytes& file : opened.views) bytes.push_back(file.bytes);
  const uint64_t salt =
      options.weights ? 1 + Traits(*options.weights).gguf_id : 0;
  content.spec.content =
      HashContent(bytes, salt, options.parallel_for, options.progress);
  if (options.weights) {
    QuantizeWeights(*options.weights, options.parallel_for, options.progress,
                    content);
  }
  return std::make_unique<MappedModelFile>(std::move(opened.files),
                                           std::move(content));
}

}  // namespace penstock
