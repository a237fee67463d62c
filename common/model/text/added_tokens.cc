#include "common/model/text/added_tokens.h"

#include "common/model/text/unicode_class.h"

namespace penstock {
namespace {

// The start of the character before `at`. Precondition: at > 0.
size_t Before(absl::string_view text, size_t at) {
  --at;
  while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace

void AddedTokens::Add(absl::string_view text, const TokenMatching& matching,
                      bool special) {
  const auto place = static_cast<TokenId>(matchings_.size());
  matchings_.push_back(matching);
  all_.Add(text, place);
  if (!special) user_defined_.Add(text, place);
}

bool AddedTokens::Fits(const TokenMatching& matching, absl::string_view text,
                       size_t begin, size_t end) const {
  if (!matching.single_word) return true;
  const bool word_before =
      begin > 0 &&
      (ClassAt(text, Before(text, begin)).classes & kWordCharacter);
  const bool word_after =
      end < text.size() && (ClassAt(text, end).classes & kWordCharacter);
  return !word_before && !word_after;
}

absl::optional<AddedTokens::Match> AddedTokens::Find(absl::string_view text,
                                                     size_t taken, size_t from,
                                                     size_t end,
                                                     bool special) const {
  const TextTrie& trie = special ? all_ : user_defined_;
  while (const auto found = trie.Find(text.substr(0, end), from)) {
    const TokenMatching& matching = matchings_[found->id];
    Match match = {found->begin, found->begin + found->length, matching.id};
    if (!Fits(matching, text, match.begin, match.end)) {
      from = match.end;
      continue;
    }
    while (matching.left_strip && match.begin > taken) {
      const size_t before = Before(text, match.begin);
      if ((ClassAt(text, before).classes & kWhiteSpace) == 0) break;
      match.begin = before;
    }
    while (matching.right_strip && match.end < text.size()) {
      const ClassedCharacter after = ClassAt(text, match.end);
      if ((after.classes & kWhiteSpace) == 0) break;
      match.end += after.length;
    }
    return match;
  }
  return absl::nullopt;
}

}  // namespace penstock
