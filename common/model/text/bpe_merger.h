#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/id.h"

namespace penstock {

// The merge rules of a byte pair encoding: joins the adjacent pair of best rank
// (the leftmost on a tie) until no rule applies. Immutable; safe from any
// thread through a Session each.
class BpeMerger {
 public:
  using TokenIds = absl::flat_hash_map<absl::string_view, TokenId>;

  // `merges` as in Vocabulary. INVALID_ARGUMENT names the rule that is not
  // "left right" or speaks of a token that is not in `ids`.
  static absl::StatusOr<BpeMerger> Create(absl::Span<const std::string> merges,
                                          const TokenIds& ids);

  // Working memory for one thread; must not outlive the merger.
  class Session {
   public:
    explicit Session(const BpeMerger& merger) : merger_(merger) {}

    // Merges what is in `symbols` in place, in O(n log n).
    // Precondition: fewer than 2^31 symbols.
    void Merge(std::vector<TokenId>& symbols);

   private:
    // A place in the piece; a merged pair lives on in its left place.
    struct Node {
      TokenId id;  // kGone once merged into its left neighbour
      int32_t previous;
      int32_t next;
    };
    struct Candidate {
      int32_t rank;
      int32_t left;  // place of the left symbol
      TokenId result;
      // Orders a heap: best rank on top, then leftmost.
      friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
      }
    };
    void Offer(int32_t left);
    void Join(const Candidate& best);

    const BpeMerger& merger_;
    std::vector<Node> nodes_;
    std::vector<Candidate> heap_;
  };

 private:
  struct Rule {
    int32_t rank;
    TokenId result;
  };
  static uint64_t Pair(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 |
           static_cast<uint32_t>(right);
  }
  // Null when the two do not merge.
  const Rule* Find(TokenId left, TokenId right) const {
    const auto rule = rules_.find(Pair(left, right));
    return rule == rules_.end() ? nullptr : &rule->second;
  }

  absl::flat_hash_map<uint64_t, Rule> rules_;
};

}  // namespace penstock
