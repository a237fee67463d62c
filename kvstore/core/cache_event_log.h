#pragma once

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
// behind. Single-threaded, the engine thread's.
class CacheEventLog {
 public:
  // Keeps at most `ring` events for replay.
  explicit CacheEventLog(size_t ring = 16384) : ring_(ring) {}

  // No parent: the block is the first of its scope.
  void Stored(BlockHash parent, BlockHash hash);
  void Removed(BlockHash hash);
  void Cleared();

  // Events that Since could give; at most the ring.
  size_t kept() const { return events_.size(); }
  size_t ring() const { return ring_; }
  // Blocks that a Snapshot would have.
  size_t cached() const { return stored_.size(); }

  // The last sequence given out; 0 before the first event.
  uint64_t last_sequence() const { return last_; }

  // Events after `sequence`, oldest first, at most `most`; nullopt when some
  // have left the ring: the asker needs a Snapshot.
  std::optional<std::vector<CacheEvent>> Since(
      uint64_t sequence,
      uint64_t most = std::numeric_limits<uint64_t>::max()) const;

  // Everything that is cached after last_sequence().
  CacheSnapshot Snapshot() const;

 private:
  // One event, without what an event of another kind would need.
  struct Record {
    enum class Kind { kStored, kRemoved, kCleared };
    Kind kind;
    BlockHash parent, hash;
  };

  void Append(Record record);

  size_t ring_;
  uint64_t last_ = 0;
  std::deque<Record> events_;
  struct Node {
    BlockHash parent;
    uint64_t sequence = 0;  // of its Stored event
  };
  absl::flat_hash_map<BlockHash, Node> stored_;
};

}  // namespace penstock
