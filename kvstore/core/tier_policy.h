#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "common/base/id.h"

namespace penstock {

// Which page of a bounded tier goes next: GreedyDual-Size-Frequency (L.
// Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-
// Frequency Caching Policy", HPL-98-69, 1998; after P. Cao and S. Irani,
// "Cost-Aware WWW Proxy Caching Algorithms", USITS 1997). A page's priority is
//
//   clock + uses x (seconds to recompute - seconds to fetch) / bytes
//
// with the clock as it was at the last use; it rises to the priority of each
// page that goes, so that what was much used long ago gives way. Equal
// priorities go in order of last use.
//
// KV pages are of use only behind all earlier pages of their chain, so a page
// goes only when no held page goes on from it. Pages may come in any order:
// the pool above evicts leaves first, so children come before their parents.
//
// Pure; knows hashes and costs, not pages. Single-threaded, its tier's.
class TierPolicy {
 public:
  // What a request saves when it finds a page here.
  struct Cost {
    double recompute_seconds = 1.0;
    double fetch_seconds = 0.0;
    uint64_t bytes = 1;
  };

  // A page came in, used once. One that is held counts as used again.
  // Precondition: cost.bytes > 0.
  void Add(BlockHash hash, BlockHash parent, const Cost& cost);

  // Unknown pages are a no-op.
  void Use(BlockHash hash);

  // A page went for a reason that is not the policy's: it was bad. Unknown
  // pages are a no-op.
  void Remove(BlockHash hash);

  // The page that should go now; nothing: none is held.
  std::optional<BlockHash> Victim() const;

  // Takes the victim out, and lets time pass for the others.
  std::optional<BlockHash> Evict();

  bool Holds(BlockHash hash) const { return entries_.contains(hash); }
  // Precondition: held.
  double Priority(BlockHash hash) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    BlockHash parent;
    double worth = 0;  // of one use
    uint64_t uses = 0;
    double priority = 0;
    uint64_t last_use = 0;
  };
  struct Order {
    double priority;
    uint64_t last_use;
    BlockHash hash;
    friend auto operator<=>(const Order&, const Order&) = default;
  };

  static Order OrderOf(BlockHash hash, const Entry& entry);
  bool IsLeaf(BlockHash hash) const { return !children_.contains(hash); }
  void Touch(BlockHash hash, Entry& entry);

  absl::flat_hash_map<BlockHash, Entry> entries_;
  // Held pages that go on from a page, whether that one is held or not.
  absl::flat_hash_map<BlockHash, int> children_;
  std::set<Order> leaves_;
  double clock_ = 0;
  uint64_t tick_ = 0;
};

}  // namespace penstock
