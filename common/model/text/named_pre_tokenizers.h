#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/vocabulary.h"

namespace penstock {

// What a name in tokenizer.ggml.pre stands for.
struct NamedPreTokenizer {
  std::vector<NormalizerStep> normalizers;
  std::vector<PreTokenizerStep> steps;
  bool ignore_merges = false;
};

// UNIMPLEMENTED names a pre-tokenizer that has no row, and those that have.
absl::StatusOr<NamedPreTokenizer> FindPreTokenizer(absl::string_view name);

// All names, for tests.
std::vector<absl::string_view> PreTokenizerNames();

}  // namespace penstock
