#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/id.h"
#include "common/model/files/file_bytes.h"
#include "common/model/files/model_content.h"
#include "common/model/files/model_error.h"

namespace penstock {

// The files of a Hugging Face folder; those that it does not have are empty.
struct HuggingFaceFiles {
  std::string name;               // of the folder, and so of the model
  FileBytes config;               // config.json
  FileBytes generation_config;    // generation_config.json
  FileBytes index;                // model.safetensors.index.json
  std::vector<FileBytes> shards;  // in the order of ShardNames, or the only one
};

// Names of the files that an index spreads the tensors over, in order; plain
// names, so that none leads out of the folder. kJson, kKeyType, kMissingKey,
// kShardName.
absl::StatusOr<std::vector<std::string>> ShardNames(const FileBytes& index);

// All of a model but its vocabulary, chat template and content id: the pure
// core of OpenModelFile for folders. Every error carries a ModelError and the
// path of one of the files.
absl::StatusOr<ModelContent> ReadHuggingFaceModel(
    const HuggingFaceFiles& files);

// Tokens that end a generation, by generation_config.json or else config.json.
// kTokenId when one is not in the vocabulary.
absl::StatusOr<std::vector<TokenId>> ReadEndTokens(
    const HuggingFaceFiles& files, int vocab_size);

}  // namespace penstock
