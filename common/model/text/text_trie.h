#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/id.h"

namespace penstock {

// Finds the texts of special tokens inside longer text. Filled once, then
// immutable and safe from any thread.
class TextTrie {
 public:
  // Precondition: `text` is not empty. A later id for equal text wins.
  void Add(absl::string_view text, TokenId id);

  struct Match {
    size_t begin;
    size_t length;
    TokenId id;
  };
  // The leftmost text at or after `from`; the longest of those that begin
  // there.
  absl::optional<Match> Find(absl::string_view text, size_t from) const;

  // For walks of one's own: the node after `node` by `byte`, or -1; the root
  // is 0. The id of a node's text, or -1.
  int64_t Next(uint32_t node, char byte) const {
    const auto edge = edges_.find(Edge(node, byte));
    return edge == edges_.end() ? -1 : int64_t{edge->second};
  }
  TokenId IdAt(uint32_t node) const { return ids_[node]; }

 private:
  static constexpr TokenId kNone = -1;
  static uint64_t Edge(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
  }

  std::vector<TokenId> ids_ = {kNone};  // by node; node 0 is the root
  absl::flat_hash_map<uint64_t, uint32_t> edges_;
  std::array<bool, 256> starts_ = {};
};

}  // namespace penstock
