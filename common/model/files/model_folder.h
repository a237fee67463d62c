#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/files/file_bytes.h"
#include "common/model/files/hf_model.h"
#include "common/model/files/mapped_file.h"

namespace penstock {

// A Hugging Face folder, its files mapped. Views stay valid when it moves.
struct ModelFolder {
  std::vector<MappedFile> files;
  HuggingFaceFiles model;
  FileBytes tokenizer;         // tokenizer.json
  FileBytes tokenizer_config;  // tokenizer_config.json; empty: none
  FileBytes chat_template;     // chat_template.jinja; empty: none

  // Every file's bytes, in the order in which they are fingerprinted: the small
  // ones as above, then the index and the shards.
  std::vector<absl::Span<const uint8_t>> AllBytes() const;
};

bool IsFolder(const std::string& path);

// NOT_FOUND names the file that a model cannot do without.
absl::StatusOr<ModelFolder> OpenModelFolder(const std::string& path);

}  // namespace penstock
