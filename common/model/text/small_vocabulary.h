#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/model/text/byte_alphabet.h"
#include "common/model/vocabulary.h"

namespace penstock {

// For tests: a byte-level vocabulary in which id 0..255 is the byte, then the
// results of `merges` ("left right"), then the special tokens <s> (bos), </s>
// (eos, stop),
// <|x|> and <|x|>y, and the user-defined token <tool>.
inline Vocabulary SmallVocabulary(const std::vector<std::string>& merges = {}) {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre_tokenizer = "smollm";
  const ByteAlphabet alphabet;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary.tokens.push_back(alphabet.Character(static_cast<uint8_t>(byte)));
  }
  const auto id = [&vocabulary](const std::string& token) {
    const auto found =
        std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), token);
    return static_cast<TokenId>(found - vocabulary.tokens.begin());
  };
  for (const std::string& merge : merges) {
    const size_t space = merge.find(' ');
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    vocabulary.tokens.push_back(left + right);
    vocabulary.merges.push_back({id(left), id(right), id(left + right)});
  }
  vocabulary.kinds.assign(vocabulary.tokens.size(), TokenKind::kNormal);
  const auto add = [&vocabulary](const char* text, TokenKind kind) {
    vocabulary.tokens.push_back(text);
    vocabulary.kinds.push_back(kind);
    return static_cast<TokenId>(vocabulary.tokens.size() - 1);
  };
  vocabulary.bos = add("<s>", TokenKind::kControl);
  vocabulary.eos = add("</s>", TokenKind::kControl);
  add("<|x|>", TokenKind::kControl);
  add("<|x|>y", TokenKind::kControl);
  add("<tool>", TokenKind::kUserDefined);
  vocabulary.stop_tokens = {vocabulary.eos};
  return vocabulary;
}

}  // namespace penstock
