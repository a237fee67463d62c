#pragma once

#include <string>
#include <vector>

#include "common/base/id.h"

namespace penstock {

enum class TokenKind {
  kNormal,
  kControl,
  kUserDefined,
  kUnknown,
  kByte,
  kUnused
};

// What a tokenizer needs from a model file. Plain data, immutable.
struct Vocabulary {
  std::string model;                // tokenizer.ggml.model, e.g. "gpt2"
  std::string pre_tokenizer;        // tokenizer.ggml.pre, e.g. "smollm"
  std::vector<std::string> tokens;  // in the file's own (byte-level) alphabet
  std::vector<TokenKind> kinds;     // as many as tokens
  std::vector<std::string> merges;  // "left right", best rank first
  TokenId bos = -1;                 // -1: none
  TokenId eos = -1;
  TokenId unknown = -1;
  bool add_bos = false;
  // Tokens that end a generation: eos and what the vocabulary marks as end of
  // turn or text.
  std::vector<TokenId> stop_tokens;
};

}  // namespace penstock
