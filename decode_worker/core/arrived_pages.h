#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "common/env/clock.h"
#include "common/model/block_ref.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

// What lies in the blocks that a transfer opened, from the reports of all its
// transports, in whatever order they are read: a page counts once it has landed
// whole, and no more once something else may have been written over it (a copy
// that was damaged, or broke off, or was late). Owned by a DecodeTransfer;
// single-threaded.
class ArrivedPages {
 public:
  enum class State {
    kMissing,
    kThere,
    kSpoiled,  // has to be sent again
  };

  // True: a page that was there has other bytes now.
  bool Add(const PageArrival& arrival);

  State StateOf(BlockRef block) const;
  // Of the page's bytes; nothing unless it is there.
  std::optional<uint64_t> Checksum(BlockRef block) const;

  // As if nothing had come. For what is about to be asked for again: it will
  // lie on top of all that was reported so far.
  void Forget(BlockRef block) { pages_.erase(block); }

 private:
  struct Landing {
    uint64_t checksum = 0;
    Instant began;
    Instant ended;
  };
  struct Page {
    std::optional<Landing> whole;  // the last one
    // When the last write ended that did not leave a page behind, or another.
    std::optional<Instant> spoiled;

    bool there() const {
      return whole.has_value() &&
             (!spoiled.has_value() || *spoiled < whole->began);
    }
  };

  // Null unless a page has landed there whole.
  const Page* Landed(BlockRef block) const;

  absl::flat_hash_map<BlockRef, Page> pages_;
};

}  // namespace penstock
