#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/files/model_file.h"

namespace penstock {

struct ModelLoadOptions {
  std::string path = {};
  // Name of the type that matrices are stored as ("q8_0"); empty: the file's.
  std::string weights = {};
  // False for those that read no weights: the content id is as if they were of
  // that type, but they stay as they are.
  bool convert = true;
  int threads = 0;  // 0: one for each core
};

// OpenModelFile for a binary: with all threads, and showing on standard error
// how far it is where it takes more than a moment. Its errors, and
// INVALID_ARGUMENT for a type that cannot be made.
absl::StatusOr<std::unique_ptr<ModelFile>> LoadModel(
    const ModelLoadOptions& options);

}  // namespace penstock
