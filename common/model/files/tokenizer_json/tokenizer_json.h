#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/vocabulary.h"

namespace penstock {

// The texts of the files that make up a tokenizer in a Hugging Face folder.
struct TokenizerFiles {
  absl::string_view tokenizer;      // tokenizer.json
  absl::string_view config;         // tokenizer_config.json; empty: none
  absl::string_view chat_template;  // chat_template.jinja; empty: none
};

struct TokenizerContent {
  Vocabulary vocabulary;
  std::string chat_template;  // Jinja source; empty: none
};

// Reads them into what a GGUF file gives, too: BPE of bytes or characters and
// unigram models, with the normalizers, pre-tokenizers, decoders and templates
// that families use. `rows`: of the model's embedding; the vocabulary is filled
// up to them with unused tokens, so that every id that a model can produce is a
// token.
//
// The files are hostile: sizes, depth and counts are bounded and ids checked.
// INVALID_ARGUMENT says what is wrong and where ("tokenizer.json:
// model.merges[3] ..."); UNIMPLEMENTED names a type or option that this build
// does not know. Of several chat templates the one named "default" is taken;
// the file of its own goes before those of the configuration.
//
// stop_tokens are found by rule (FindStopTokens) from eos alone: ids that
// generation_config.json names are the caller's to add.
absl::StatusOr<TokenizerContent> ReadTokenizerJson(const TokenizerFiles& files,
                                                   int64_t rows);

}  // namespace penstock
