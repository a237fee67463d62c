#include "common/model/byte_token.h"

#include "absl/strings/match.h"

namespace penstock {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

int ByteOfToken(absl::string_view text) {
  if (text.size() != 6 || !absl::StartsWith(text, "<0x") || text[5] != '>') {
    return -1;
  }
  const int high = HexDigit(text[3]);
  const int low = HexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high << 4 | low;
}

std::array<TokenId, 256> FindByteTokens(const Vocabulary& vocabulary) {
  std::array<TokenId, 256> ids;
  ids.fill(-1);
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.kinds[i] != TokenKind::kByte) continue;
    const int byte = ByteOfToken(vocabulary.tokens[i]);
    if (byte >= 0) ids[byte] = static_cast<TokenId>(i);
  }
  return ids;
}

}  // namespace penstock
