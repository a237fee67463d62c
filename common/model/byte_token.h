#pragma once

#include <array>

#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/model/vocabulary.h"

namespace penstock {

// The byte that SentencePiece's <0x00> to <0xFF> spell; -1 for any other text.
int ByteOfToken(absl::string_view text);

// The kByte tokens of all bytes; -1: the byte has none.
std::array<TokenId, 256> FindByteTokens(const Vocabulary& vocabulary);

}  // namespace penstock
