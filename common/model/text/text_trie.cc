#include "common/model/text/text_trie.h"

#include "common/base/check.h"

namespace penstock {

void TextTrie::Add(absl::string_view text, TokenId id) {
  CHECK(!text.empty()) << "an empty text is found everywhere";
  starts_[static_cast<uint8_t>(text[0])] = true;
  uint32_t node = 0;
  for (const char byte : text) {
    const auto next = static_cast<uint32_t>(ids_.size());
    const auto [edge, added] = edges_.try_emplace(Edge(node, byte), next);
    if (added) ids_.push_back(kNone);
    node = edge->second;
  }
  ids_[node] = id;
}

absl::optional<TextTrie::Match> TextTrie::Find(absl::string_view text,
                                               size_t from) const {
  if (edges_.empty()) return absl::nullopt;
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    absl::optional<Match> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto edge = edges_.find(Edge(node, text[at]));
      if (edge == edges_.end()) break;
      node = edge->second;
      if (ids_[node] != kNone) {
        longest = Match{begin, at + 1 - begin, ids_[node]};
      }
    }
    if (longest.has_value()) return longest;
  }
  return absl::nullopt;
}

}  // namespace penstock
