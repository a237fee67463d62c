#include "common/model/text/token_search.h"

#include <array>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace penstock {
namespace {

// Needles by their first byte.
using Needles = std::array<std::vector<absl::string_view>, 256>;

bool Holds(absl::string_view text, const Needles& needles) {
  for (size_t at = 0; at < text.size(); ++at) {
    for (absl::string_view needle : needles[static_cast<uint8_t>(text[at])]) {
      if (absl::StartsWith(text.substr(at), needle)) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<TokenId> TokensThatHold(const Tokenizer& tokenizer,
                                    absl::Span<const std::string> needles) {
  Needles by_byte;
  for (const std::string& needle : needles) {
    CHECK(!needle.empty()) << "an empty needle";
    by_byte[static_cast<uint8_t>(needle[0])].push_back(needle);
  }
  std::vector<TokenId> found;
  if (needles.empty()) return found;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.IsSpecial(id) && Holds(tokenizer.TokenBytes(id), by_byte)) {
      found.push_back(id);
    }
  }
  return found;
}

}  // namespace penstock
