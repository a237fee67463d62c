#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/id.h"

namespace penstock {

// The merge rules of a byte pair encoding: joins the adjacent pair of best rank
// (the leftmost on a tie) until no rule applies. Immutable; safe from any
// thread through a Session each.
class BpeMerger {
 public:
  struct Rule {
    TokenId left;
    TokenId right;
    TokenId result;
    int32_t rank;  // the smallest is the best
  };
  // Preconditions: ids and ranks are not negative, and fewer than 2^30 rules.
  // Of rules for the same pair the one of best rank holds.
  explicit BpeMerger(absl::Span<const Rule> rules);

  // Working memory for one thread; must not outlive the merger.
  class Session {
   public:
    explicit Session(const BpeMerger& merger) : merger_(merger) {}

    // Merges what is in `symbols` in place, in time linear in their number as
    // long as candidates of a rank come up from left to right, as they do in
    // any repetitive text; else O(n log n). Precondition: fewer than 2^31
    // symbols.
    void Merge(std::vector<TokenId>& symbols);

    // What all calls so far have cost: rules looked up and candidates that were
    // put in order by comparing. For tests of how work grows.
    struct Work {
      uint64_t lookups = 0;
      uint64_t sorted = 0;
    };
    const Work& work() const { return work_; }

   private:
    // A place in a long piece; a merged pair lives on in its left place.
    struct Node {
      TokenId id;
      int32_t previous;
      int32_t next;
      int32_t rank;    // of the pair that begins here; none once merged away
      TokenId result;  // what that pair becomes
    };
    // The places of pairs of one rank: in order as long as they arrive so, a
    // heap from the first that does not.
    struct Bucket {
      int32_t rank;
      std::vector<int32_t> places;
      size_t head = 0;
      bool heap = false;
    };

    void MergeShort(std::vector<TokenId>& symbols);
    void MergeLong(std::vector<TokenId>& symbols);
    void Offer(int32_t left);
    void Join(int32_t place);
    uint32_t BucketOf(int32_t rank);
    void Push(int32_t rank, int32_t place);
    int32_t Pop(Bucket& bucket);

    const BpeMerger& merger_;
    std::vector<Node> nodes_;
    std::vector<Bucket> buckets_;
    absl::flat_hash_map<int32_t, uint32_t> bucket_of_rank_;
    // Heap of the ranks that have places, each with its bucket.
    std::vector<std::pair<int32_t, uint32_t>> ranks_;
    uint32_t last_bucket_ = 0;
    std::vector<int32_t> pair_ranks_;
    std::vector<TokenId> pair_results_;
    Work work_;
  };

 private:
  // An open-addressed table: one cache line for most look-ups.
  struct Entry {
    uint64_t pair;
    TokenId result;
    int32_t rank;
  };
  static uint64_t Pair(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 |
           static_cast<uint32_t>(right);
  }
  size_t Slot(uint64_t pair) const {
    return (pair * 0x9E3779B97F4A7C15u ^ pair >> 29) * 0xBF58476D1CE4E5B9u >>
           shift_;
  }
  // Null when the two do not merge.
  const Entry* Find(TokenId left, TokenId right) const;

  std::vector<Entry> table_;
  int shift_ = 63;
};

}  // namespace penstock
