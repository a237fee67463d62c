#include "router/bench/contested_index.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "router/core/prefix_index.h"

namespace penstock {
namespace {

class RunIndex : public ContestedIndex {
 public:
  std::string name() const override { return "runs"; }
  void AddWorkers(size_t count) override {
    for (size_t i = 0; i < count; ++i) index_.AddWorker(size_t{1} << 30);
  }
  void Apply(WorkerSlot worker, const CacheEvent& event) override {
    const absl::Status status = index_.Apply(worker, event);
    CHECK(status.ok()) << status;
  }
  void Depths(absl::Span<const BlockHash> chain,
              absl::Span<int> blocks) override {
    index_.Match(chain).CopyTo(blocks);
  }
  int Deepest(absl::Span<const BlockHash> chain) override {
    return index_.Match(chain).deepest();
  }
  int DepthOf(WorkerSlot worker, absl::Span<const BlockHash> chain) override {
    return index_.Match(chain).BlocksOf(worker);
  }
  void Kill(WorkerSlot worker) override { index_.RemoveWorker(worker); }
  size_t blocks() const override { return index_.distinct_blocks(); }

 private:
  PrefixIndex index_;
};

// Owners of one block, as the two plain indices keep them.
struct SortedOwners {
  std::vector<WorkerSlot> slots;

  bool Contains(WorkerSlot slot) const {
    return std::binary_search(slots.begin(), slots.end(), slot);
  }
  void Add(WorkerSlot slot) {
    auto at = std::lower_bound(slots.begin(), slots.end(), slot);
    if (at == slots.end() || *at != slot) slots.insert(at, slot);
  }
  void Remove(WorkerSlot slot) {
    auto at = std::lower_bound(slots.begin(), slots.end(), slot);
    if (at != slots.end() && *at == slot) slots.erase(at);
  }
  // Of those given, in order, the ones that are owners.
  void Intersect(std::vector<WorkerSlot>& with) const {
    std::vector<WorkerSlot> both;
    std::set_intersection(with.begin(), with.end(), slots.begin(), slots.end(),
                          std::back_inserter(both));
    with = std::move(both);
  }
};

struct HashedOwners {
  std::unordered_set<WorkerSlot> slots;

  bool Contains(WorkerSlot slot) const { return slots.contains(slot); }
  void Add(WorkerSlot slot) { slots.insert(slot); }
  void Remove(WorkerSlot slot) { slots.erase(slot); }
  void Intersect(std::vector<WorkerSlot>& with) const {
    std::erase_if(with, [&](WorkerSlot slot) { return !Contains(slot); });
  }
};

template <typename Owners>
class PlainIndex : public ContestedIndex {
 public:
  explicit PlainIndex(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  void AddWorkers(size_t) override {}

  void Apply(WorkerSlot worker, const CacheEvent& event) override {
    if (const auto* stored = std::get_if<BlocksStored>(&event.change)) {
      CHECK(!stored->parent ||
            blocks_.at(stored->parent.value()).Contains(worker));
      for (BlockHash hash : stored->hashes) {
        blocks_[hash.value()].Add(worker);
      }
    } else if (const auto* removed =
                   std::get_if<BlocksRemoved>(&event.change)) {
      for (BlockHash hash : removed->hashes) {
        auto it = blocks_.find(hash.value());
        if (it == blocks_.end()) continue;
        it->second.Remove(worker);
        if (it->second.slots.empty()) blocks_.erase(it);
      }
    }
  }

  void Depths(absl::Span<const BlockHash> chain,
              absl::Span<int> blocks) override {
    std::fill(blocks.begin(), blocks.end(), 0);
    Walk(chain, [&](const std::vector<WorkerSlot>& owners, int depth) {
      for (WorkerSlot slot : owners) blocks[slot] = depth;
    });
  }
  int Deepest(absl::Span<const BlockHash> chain) override {
    int deepest = 0;
    Walk(chain,
         [&](const std::vector<WorkerSlot>&, int depth) { deepest = depth; });
    return deepest;
  }
  int DepthOf(WorkerSlot worker, absl::Span<const BlockHash> chain) override {
    int depth = 0;
    for (BlockHash hash : chain) {
      auto it = blocks_.find(hash.value());
      if (it == blocks_.end() || !it->second.Contains(worker)) break;
      ++depth;
    }
    return depth;
  }

  void Kill(WorkerSlot worker) override {
    for (auto it = blocks_.begin(); it != blocks_.end();) {
      it->second.Remove(worker);
      it = it->second.slots.empty() ? blocks_.erase(it) : std::next(it);
    }
  }
  size_t blocks() const override { return blocks_.size(); }

 private:
  // visit(owners of all blocks so far, blocks), block by block.
  template <typename Visit>
  void Walk(absl::Span<const BlockHash> chain, Visit visit) const {
    std::vector<WorkerSlot> owners;
    for (size_t depth = 0; depth < chain.size(); ++depth) {
      auto it = blocks_.find(chain[depth].value());
      if (it == blocks_.end()) return;
      if (depth == 0) {
        owners.assign(it->second.slots.begin(), it->second.slots.end());
      } else {
        it->second.Intersect(owners);
      }
      if (owners.empty()) return;
      visit(owners, static_cast<int>(depth) + 1);
    }
  }

  std::string name_;
  std::unordered_map<uint64_t, Owners> blocks_;
};

}  // namespace

std::unique_ptr<ContestedIndex> MakeRunIndex() {
  return std::make_unique<RunIndex>();
}

std::unique_ptr<ContestedIndex> MakeVectorIndex() {
  return std::make_unique<PlainIndex<SortedOwners>>("sorted vectors");
}

std::unique_ptr<ContestedIndex> MakeSetIndex() {
  return std::make_unique<PlainIndex<HashedOwners>>("hash sets");
}

}  // namespace penstock
