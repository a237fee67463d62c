#include "common/model/files/model_folder.h"

#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/model_path.h"

namespace penstock {
namespace {

constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kOnlyShard[] = "model.safetensors";

// Opens files of one folder by name and keeps them.
class Opener {
 public:
  explicit Opener(std::string folder) : folder_(std::move(folder)) {}

  absl::StatusOr<FileBytes> Open(const std::string& name) {
    const std::string path = absl::StrCat(folder_, "/", name);
    ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
    FileBytes bytes = {.bytes = file.bytes(), .path = path};
    files_.push_back(std::move(file));
    return bytes;
  }

  // Empty when there is no such file.
  absl::StatusOr<FileBytes> OpenIfPresent(const std::string& name) {
    absl::StatusOr<FileBytes> file = Open(name);
    if (absl::IsNotFound(file.status())) return FileBytes();
    return file;
  }

  std::vector<MappedFile> TakeFiles() { return std::move(files_); }

 private:
  const std::string folder_;
  std::vector<MappedFile> files_;
};

absl::Status OpenShards(const std::string& path, Opener& opener,
                        HuggingFaceFiles& model) {
  ASSIGN_OR_RETURN(model.index, opener.OpenIfPresent(kIndex));
  std::vector<std::string> names = {kOnlyShard};
  if (!model.index.bytes.empty()) {
    ASSIGN_OR_RETURN(names, ShardNames(model.index));
  }
  for (const std::string& name : names) {
    absl::StatusOr<FileBytes> shard = opener.Open(name);
    if (absl::IsNotFound(shard.status()) && model.index.bytes.empty()) {
      return absl::NotFoundError(absl::StrCat(
          path, ": neither ", kOnlyShard, " nor ", kIndex,
          " is there; give a Hugging Face folder with safetensors, or a GGUF "
          "file"));
    }
    RETURN_IF_ERROR(shard.status());
    model.shards.push_back(*std::move(shard));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<absl::Span<const uint8_t>> ModelFolder::AllBytes() const {
  std::vector<absl::Span<const uint8_t>> all;
  for (const FileBytes* file :
       {&model.config, &model.generation_config, &tokenizer, &tokenizer_config,
        &chat_template, &model.index}) {
    all.push_back(file->bytes);
  }
  for (const FileBytes& shard : model.shards) all.push_back(shard.bytes);
  return all;
}

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<ModelFolder> OpenModelFolder(const std::string& path) {
  ModelFolder folder;
  Opener opener(path);
  HuggingFaceFiles& model = folder.model;
  model.name = ModelNameOf(path);
  ASSIGN_OR_RETURN(model.config, opener.Open("config.json"));
  ASSIGN_OR_RETURN(model.generation_config,
                   opener.OpenIfPresent("generation_config.json"));
  RETURN_IF_ERROR(OpenShards(path, opener, model));
  ASSIGN_OR_RETURN(folder.tokenizer, opener.Open("tokenizer.json"));
  ASSIGN_OR_RETURN(folder.tokenizer_config,
                   opener.OpenIfPresent("tokenizer_config.json"));
  ASSIGN_OR_RETURN(folder.chat_template,
                   opener.OpenIfPresent("chat_template.jinja"));
  folder.files = opener.TakeFiles();
  return folder;
}

}  // namespace penstock
