#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/id.h"
#include "common/peer/worker_report.h"

namespace penstock {

// What the prefix cache tells routers: sequenced changes of one incarnation,
// with a bounded ring to replay from and a snapshot for those who fell too far
// behind. Blocks that are stored or removed in a row become one event, until
// somebody has read it: a prompt's blocks cost routers one event, not one each.
// Single-threaded, the engine thread's.
class CacheEventLog {
 public:
  // Keeps the last events for replay, of at most `ring` blocks in all.
  explicit CacheEventLog(size_t ring = 16384) : ring_(ring) {}

  // No parent: the block is the first of its scope.
  void Stored(BlockHash parent, BlockHash hash);
  void Removed(BlockHash hash);
  void Cleared();

  // Blocks or events, what is more, that Since could give; at most the ring.
  size_t kept() const { return std::max(events_.size(), hashes_.size()); }
  size_t ring() const { return ring_; }
  // Blocks that a Snapshot would have.
  size_t cached() const { return stored_.size(); }

  // The last sequence given out; 0 before the first event.
  uint64_t last_sequence() const { return last_; }

  // Events after `sequence`, oldest first, of `most` blocks or little more;
  // nullopt when some have left the ring: the asker needs a Snapshot. What was
  // read stays as it is: later changes are later events.
  std::optional<std::vector<CacheEvent>> Since(
      uint64_t sequence, uint64_t most = std::numeric_limits<uint64_t>::max());

  // Everything that is cached after last_sequence(), which is read by that.
  CacheSnapshot Snapshot();

 private:
  enum class Kind { kStored, kRemoved, kCleared };
  // One event; its blocks are the next `blocks` of hashes_.
  struct Record {
    Kind kind;
    BlockHash parent;
    size_t blocks = 0;
  };
  struct Node {
    BlockHash parent;
    uint64_t age = 0;  // parents are older than their children
  };

  void Append(Kind kind, BlockHash parent, BlockHash hash);
  bool Continues(Kind kind, BlockHash parent) const;
  void DropOldest();

  size_t ring_;
  uint64_t last_ = 0;
  uint64_t read_ = 0;  // the last sequence that somebody has read
  uint64_t next_age_ = 0;
  std::deque<Record> events_;
  std::deque<BlockHash> hashes_;  // of all of them, in order
  absl::flat_hash_map<BlockHash, Node> stored_;
};

}  // namespace penstock
