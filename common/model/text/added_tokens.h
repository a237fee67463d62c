#pragma once

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/id.h"
#include "common/model/text/text_trie.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Finds control and user-defined tokens in text. Filled once, then immutable
// and safe from any thread.
class AddedTokens {
 public:
  // Precondition: `text` is not empty. `matching.id` is its id; `special`: it
  // is found only where special tokens are parsed.
  void Add(absl::string_view text, const TokenMatching& matching, bool special);
  bool empty() const { return matchings_.empty(); }

  struct Match {
    size_t begin;  // with the white space that belongs to it
    size_t end;
    TokenId id;
  };
  // The leftmost token (the longest of those that begin there) that lies in
  // text[from, end); words and white space around it are judged by all of
  // `text`, white space from `taken` on. `special`: whether special tokens
  // count. Precondition: taken <= from <= end.
  absl::optional<Match> Find(absl::string_view text, size_t taken, size_t from,
                             size_t end, bool special) const;

 private:
  // Whether it stands apart from words where it must.
  bool Fits(const TokenMatching& matching, absl::string_view text, size_t begin,
            size_t end) const;

  TextTrie all_;
  TextTrie user_defined_;
  std::vector<TokenMatching> matchings_;  // the tries' ids are places here
};

}  // namespace penstock
