#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/base/id.h"
#include "common/env/random.h"
#include "common/peer/worker_report.h"
#include "router/core/testing/prefix_forest.h"

namespace penstock {

// A worker's end of the feed of cache events: what it has cached, the events
// that it can send again, and what is on its way to the router.
class FeedWorker {
 public:
  using Message = std::variant<CacheEvent, CacheSnapshot>;

  // A new process of this name.
  void Start(const std::string& name);

  // Each makes one event of something random; false is never sent.
  void Store(const PrefixForest& forest, Random& random, bool sent);
  void Remove(const PrefixForest& forest, Random& random, bool sent);
  void Clear(bool sent);
  // An event that changes nothing, by which a gap before it shows.
  void Nudge();
  // Sends one again that may have been applied.
  void Repeat(Random& random);

  // The router asks for events from there on, 0 for a snapshot. True: they
  // could be had, and no snapshot was needed.
  bool Resend(uint64_t from);
  // What was on its way is lost.
  void Disconnect() { wire_.clear(); }

  std::deque<Message>& wire() { return wire_; }
  const WorkerKey& key() const { return key_; }
  // By the parent that it was stored below.
  const std::map<BlockHash, BlockHash>& blocks() const { return blocks_; }

 private:
  void Emit(decltype(CacheEvent::change) change, bool sent);
  CacheSnapshot Snapshot() const;

  WorkerKey key_;
  uint64_t incarnations_ = 0;
  uint64_t sequence_ = 0;
  std::map<BlockHash, BlockHash> blocks_;
  std::deque<CacheEvent> ring_;
  std::deque<Message> wire_;
};

}  // namespace penstock
