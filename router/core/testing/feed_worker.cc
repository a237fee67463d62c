#include "router/core/testing/feed_worker.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kRing = 16;

}  // namespace

void FeedWorker::Start(const std::string& name) {
  key_ = {name, Incarnation(++incarnations_)};
  sequence_ = 0;
  blocks_.clear();
  ring_.clear();
  wire_.clear();
}

void FeedWorker::Emit(decltype(CacheEvent::change) change, bool sent) {
  const CacheEvent event{++sequence_, std::move(change)};
  ring_.push_back(event);
  if (ring_.size() > kRing) ring_.pop_front();
  if (sent) wire_.push_back(event);
}

void FeedWorker::Store(const PrefixForest& forest, Random& random, bool sent) {
  const std::vector<BlockHash> path = forest.PathTo(forest.RandomNode(random));
  size_t held = 0;
  while (held < path.size() && blocks_.contains(path[held])) ++held;
  // Some that it has already, sometimes.
  size_t from = held - random.Below(std::min<size_t>(held, 2) + 1);
  // Or below one that it has not: nobody can make sense of that event.
  if (held + 1 < path.size() && random.Below(30) == 0) from = held + 1;
  BlocksStored stored;
  if (from > 0) stored.parent = path[from - 1];
  for (BlockHash parent = stored.parent; from < path.size(); ++from) {
    blocks_.try_emplace(path[from], parent);
    stored.hashes.push_back(path[from]);
    parent = path[from];
  }
  Emit(std::move(stored), sent);
}

void FeedWorker::Remove(const PrefixForest& forest, Random& random, bool sent) {
  const std::vector<BlockHash> path = forest.PathTo(forest.RandomNode(random));
  BlocksRemoved removed;
  // From the end mostly; what is not there too.
  for (size_t i = path.size(); i-- > 0;) {
    if (random.Below(10) == 0) break;
    removed.hashes.push_back(path[i]);
    blocks_.erase(path[i]);
  }
  Emit(std::move(removed), sent);
}

void FeedWorker::Clear(bool sent) {
  blocks_.clear();
  Emit(CacheCleared(), sent);
}

void FeedWorker::Nudge() { Emit(BlocksStored(), true); }

void FeedWorker::Repeat(Random& random) {
  if (ring_.empty()) return;
  wire_.push_back(ring_[random.Below(ring_.size())]);
}

bool FeedWorker::Resend(uint64_t from) {
  if (from == 0 || ring_.empty() || ring_.front().sequence > from) {
    wire_.push_back(Snapshot());
    return false;
  }
  for (const CacheEvent& event : ring_) {
    if (event.sequence >= from) wire_.push_back(event);
  }
  return true;
}

CacheSnapshot FeedWorker::Snapshot() const {
  CacheSnapshot snapshot;
  snapshot.sequence = sequence_;
  for (const auto& [hash, parent] : blocks_) {
    snapshot.chains.push_back({parent, {hash}});
  }
  return snapshot;
}

}  // namespace penstock
