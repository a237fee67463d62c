#include "router/core/prefix_index.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Blocks of removed workers that are given back at their removal, and with each
// event after it.
constexpr size_t kSweptAtRemoval = 4096;
constexpr size_t kSweptWithEvent = 16;

absl::Status UnknownWorker(WorkerSlot slot) {
  return absl::NotFoundError(absl::StrCat("no worker in slot ", slot));
}

}  // namespace

WorkerSlot PrefixIndex::AddWorker(size_t max_blocks) {
  if (free_slots_.empty()) free_slots_.insert(slot_limit_++);
  const WorkerSlot slot = *free_slots_.begin();
  free_slots_.erase(free_slots_.begin());
  workers_[slot].max_blocks = max_blocks;
  return slot;
}

void PrefixIndex::RemoveWorker(WorkerSlot slot) {
  auto it = workers_.find(slot);
  if (it == workers_.end()) return;
  memberships_ -= it->second.blocks.size();
  Swept& swept = removed_.emplace_back();
  swept.worker = workers_.extract(it);
  // In any order: none of them can match any more.
  swept.next = swept.worker.mapped().blocks.begin();
  Sweep(kSweptAtRemoval);
}

void PrefixIndex::Sweep(size_t blocks) {
  for (; blocks > 0 && !removed_.empty(); --blocks) {
    Swept& swept = removed_.front();
    if (swept.next == swept.worker.mapped().blocks.end()) {
      free_slots_.insert(swept.worker.key());
      removed_.pop_front();
    } else {
      RemoveOwner(swept.worker.key(), (swept.next++)->first);
    }
  }
}

void PrefixIndex::ClearWorker(WorkerSlot slot) {
  auto it = workers_.find(slot);
  if (it != workers_.end()) Clear(slot, it->second);
}

absl::Status PrefixIndex::Apply(WorkerSlot slot, const CacheEvent& event) {
  // Faster than blocks can come.
  Sweep(kSweptWithEvent);
  auto it = workers_.find(slot);
  if (it == workers_.end()) return UnknownWorker(slot);
  Worker& worker = it->second;
  if (event.sequence <= worker.last_sequence) return absl::OkStatus();
  if (event.sequence != worker.last_sequence + 1) {
    return absl::OutOfRangeError(
        absl::StrCat("cache event ", event.sequence, " came where ",
                     worker.last_sequence + 1, " was expected"));
  }
  if (const auto* stored = std::get_if<BlocksStored>(&event.change)) {
    if (stored->parent && !worker.blocks.contains(stored->parent)) {
      return absl::FailedPreconditionError(
          absl::StrCat("cache event ", event.sequence, " stores blocks below ",
                       stored->parent.value(), ", which is not stored"));
    }
    size_t fresh = 0;
    for (BlockHash hash : stored->hashes) {
      if (!hash) {
        return absl::FailedPreconditionError(absl::StrCat(
            "cache event ", event.sequence, " stores a block without a hash"));
      }
      if (!worker.blocks.contains(hash)) ++fresh;
    }
    if (fresh > worker.max_blocks - worker.blocks.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat("cache event ", event.sequence, " stores more than the ",
                       worker.max_blocks, " blocks that fit the worker"));
    }
    Store(slot, worker, *stored);
  } else if (const auto* removed = std::get_if<BlocksRemoved>(&event.change)) {
    for (BlockHash hash : removed->hashes) Remove(slot, worker, hash);
  } else {
    Clear(slot, worker);
  }
  worker.last_sequence = event.sequence;
  return absl::OkStatus();
}

absl::Status PrefixIndex::Replace(WorkerSlot slot,
                                  const CacheSnapshot& snapshot) {
  auto it = workers_.find(slot);
  if (it == workers_.end()) return UnknownWorker(slot);
  Worker& worker = it->second;
  size_t blocks = 0;
  for (const BlocksStored& chain : snapshot.chains) {
    blocks += chain.hashes.size();
    if (std::find(chain.hashes.begin(), chain.hashes.end(), BlockHash()) !=
        chain.hashes.end()) {
      return absl::InvalidArgumentError(
          "a cache snapshot holds a block without a hash");
    }
  }
  if (blocks > worker.max_blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache snapshot holds ", blocks, " blocks, more than ",
                     worker.max_blocks, ", which fit the worker"));
  }
  Clear(slot, worker);
  for (const BlocksStored& chain : snapshot.chains) Store(slot, worker, chain);
  worker.last_sequence = snapshot.sequence;
  return absl::OkStatus();
}

uint64_t PrefixIndex::ExpectedSequence(WorkerSlot slot) const {
  auto it = workers_.find(slot);
  return it == workers_.end() ? 0 : it->second.last_sequence + 1;
}

PrefixMatch PrefixIndex::Match(absl::Span<const BlockHash> chain) const {
  std::vector<PrefixMatch::Holding> matches;
  std::vector<WorkerSlot> alive;  // workers that own every block so far
  for (size_t depth = 0; depth < chain.size(); ++depth) {
    auto it = owners_.find(chain[depth]);
    if (it == owners_.end()) break;
    std::vector<WorkerSlot> still;
    if (depth == 0) {
      still.assign(it->second.begin(), it->second.end());
      if (!removed_.empty()) {
        std::erase_if(still,
                      [&](WorkerSlot s) { return !workers_.contains(s); });
      }
    } else {
      std::set_intersection(alive.begin(), alive.end(), it->second.begin(),
                            it->second.end(), std::back_inserter(still));
    }
    if (still.empty()) break;
    if (depth == 0) {
      for (WorkerSlot slot : still) matches.push_back({slot, 0});
    }
    alive = std::move(still);
    auto match = matches.begin();
    for (WorkerSlot slot : alive) {
      while (match->slot != slot) ++match;
      match->blocks = static_cast<int>(depth + 1);
    }
  }
  return PrefixMatch(std::move(matches));
}

CacheSnapshot PrefixIndex::Dump(WorkerSlot slot) const {
  CacheSnapshot snapshot;
  auto it = workers_.find(slot);
  if (it == workers_.end()) return snapshot;
  snapshot.sequence = it->second.last_sequence;
  std::vector<std::pair<uint64_t, BlocksStored>> by_age;
  by_age.reserve(it->second.blocks.size());
  for (const auto& [hash, block] : it->second.blocks) {
    by_age.push_back({block.age, {block.parent, {hash}}});
  }
  std::sort(by_age.begin(), by_age.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [age, chain] : by_age) {
    snapshot.chains.push_back(std::move(chain));
  }
  return snapshot;
}

void PrefixIndex::Store(WorkerSlot slot, Worker& worker,
                        const BlocksStored& stored) {
  BlockHash parent = stored.parent;
  for (BlockHash hash : stored.hashes) {
    Sweep(2);
    bool added =
        worker.blocks.try_emplace(hash, Worker::Block{parent, next_age_})
            .second;
    if (added) {
      ++next_age_;
      ++memberships_;
      Owners& owners = owners_[hash];
      owners.insert(std::lower_bound(owners.begin(), owners.end(), slot), slot);
    }
    parent = hash;
  }
}

void PrefixIndex::Remove(WorkerSlot slot, Worker& worker, BlockHash hash) {
  if (worker.blocks.erase(hash) == 0) return;
  --memberships_;
  RemoveOwner(slot, hash);
}

void PrefixIndex::RemoveOwner(WorkerSlot slot, BlockHash hash) {
  auto it = owners_.find(hash);
  Owners& owners = it->second;
  owners.erase(std::lower_bound(owners.begin(), owners.end(), slot));
  if (owners.empty()) owners_.erase(it);
}

void PrefixIndex::Clear(WorkerSlot slot, Worker& worker) {
  std::vector<BlockHash> hashes;
  hashes.reserve(worker.blocks.size());
  for (const auto& [hash, block] : worker.blocks) hashes.push_back(hash);
  std::sort(hashes.begin(), hashes.end());
  for (BlockHash hash : hashes) Remove(slot, worker, hash);
}

}  // namespace penstock
