#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/model/files/hf_model.h"
#include "common/model/files/testing/hf_mutator.h"
#include "common/model/files/testing/weight_exercise.h"

namespace penstock {
namespace {

constexpr char kPath[] = "mutated/";

// Copies of texts in allocations of exactly their size, where a sanitizer sees
// a read past the end.
class ExactBytes {
 public:
  FileBytes Add(const std::string& name, const std::string& text) {
    uint8_t* bytes =
        copies_.emplace_back(std::make_unique<uint8_t[]>(text.size())).get();
    std::copy(text.begin(), text.end(), bytes);
    return {.bytes = {bytes, text.size()}, .path = kPath + name};
  }

 private:
  std::vector<std::unique_ptr<uint8_t[]>> copies_;
};

ModelError CodeOf(const absl::Status& status) {
  const std::optional<ModelError> error = ModelErrorOf(status);
  CHECK(error.has_value()) << status.ToString();
  CHECK(status.message().substr(0, sizeof(kPath) - 1) == kPath)
      << status.message();
  return *error;
}

}  // namespace

std::optional<ModelError> ExerciseFolder(const FolderImage& folder) {
  ExactBytes copies;
  HuggingFaceFiles files;
  files.name = "mutated";
  files.config = copies.Add("config.json", folder.config);
  files.generation_config =
      copies.Add("generation_config.json", folder.generation_config);
  std::vector<std::string> names = {folder.shards[0].name};
  if (!folder.index.empty()) {
    files.index = copies.Add("model.safetensors.index.json", folder.index);
    auto read = ShardNames(files.index);
    if (!read.ok()) return CodeOf(read.status());
    names = *read;
  }
  for (const std::string& name : names) {
    for (const FolderImage::Shard& shard : folder.shards) {
      if (shard.name != name) continue;
      files.shards.push_back(copies.Add(name, shard.bytes));
    }
  }
  auto content = ReadHuggingFaceModel(files);
  if (!content.ok()) return CodeOf(content.status());
  ExerciseSpec(content->spec);
  ExerciseWeights(*content);
  auto ends = ReadEndTokens(files, content->spec.vocab_size);
  if (!ends.ok()) return CodeOf(ends.status());
  for (TokenId id : *ends) CHECK(id >= 0 && id < content->spec.vocab_size);
  return std::nullopt;
}

}  // namespace penstock
