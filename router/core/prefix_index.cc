#include "router/core/prefix_index.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
namespace {

// Runs that each event, and each new worker, takes removed workers out of.
constexpr size_t kSweptAtOnce = 64;

absl::Status UnknownWorker(WorkerSlot worker) {
  return absl::NotFoundError(absl::StrCat("no worker in slot ", worker));
}

bool HasNoHash(absl::Span<const BlockHash> hashes) {
  return std::find(hashes.begin(), hashes.end(), BlockHash()) != hashes.end();
}

}  // namespace

WorkerSlot PrefixIndex::AddWorker(size_t max_blocks) {
  CHECK(workers_ < kMaxWorkerSlots);
  Sweep(kSweptAtOnce);
  auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.state == SlotState::kFree;
  });
  if (free == slots_.end() && slots_.size() == kMaxWorkerSlots) {
    // Everything that is named still: at most two sweeps.
    while (removed_ > 0 || sweeping_) Sweep(kSweptAtOnce);
    return AddWorker(max_blocks);
  }
  const auto worker = static_cast<WorkerSlot>(free - slots_.begin());
  if (free == slots_.end()) {
    slots_.emplace_back();
    alive_.resize(slots_.size() / 64 + 1);
  }
  slots_[worker] = {SlotState::kAlive, false, max_blocks};
  alive_[worker / 64] |= uint64_t{1} << (worker % 64);
  ++workers_;
  return worker;
}

void PrefixIndex::RemoveWorker(WorkerSlot worker) {
  Slot* slot = Find(worker);
  if (slot == nullptr) return;
  slot->state = SlotState::kRemoved;
  alive_[worker / 64] &= ~(uint64_t{1} << (worker % 64));
  tree_.Kill(worker);
  predicted_.Kill(worker);
  memberships_ -= slot->blocks;
  --workers_;
  ++removed_;
}

void PrefixIndex::Sweep(size_t runs) {
  if (!sweeping_ && removed_ == 0) return;
  if (!sweeping_) {
    for (Slot& slot : slots_) {
      if (slot.state == SlotState::kRemoved) slot.state = SlotState::kSwept;
    }
    removed_ = 0;
    sweeping_ = true;
    tree_.StartSweep();
    predicted_.StartSweep();
  }
  size_t visited = tree_.Sweep(runs);
  visited += predicted_.Sweep(runs - visited);
  Fit();
  if (visited == runs) return;
  sweeping_ = false;
  for (WorkerSlot worker = 0; worker < slots_.size(); ++worker) {
    if (slots_[worker].state != SlotState::kSwept) continue;
    slots_[worker].state = SlotState::kFree;
    tree_.Revive(worker);
    predicted_.Revive(worker);
  }
}

void PrefixIndex::ClearWorker(WorkerSlot worker) {
  if (Find(worker) != nullptr) Clear(worker);
}

absl::Status PrefixIndex::Apply(WorkerSlot worker, const CacheEvent& event) {
  Sweep(kSweptAtOnce);
  Slot* slot = Find(worker);
  if (slot == nullptr) return UnknownWorker(worker);
  if (event.sequence <= slot->last_sequence) return absl::OkStatus();
  if (event.sequence != slot->last_sequence + 1) {
    return absl::OutOfRangeError(
        absl::StrCat("cache event ", event.sequence, " came where ",
                     slot->last_sequence + 1, " was expected"));
  }
  if (const auto* stored = std::get_if<BlocksStored>(&event.change)) {
    absl::Status status = CheckStored(worker, *slot, event, *stored);
    if (!status.ok()) return status;
    Store(worker, *stored);
  } else if (const auto* removed = std::get_if<BlocksRemoved>(&event.change)) {
    Remove(worker, removed->hashes);
  } else {
    Clear(worker);
  }
  slot->last_sequence = event.sequence;
  return absl::OkStatus();
}

absl::Status PrefixIndex::CheckStored(WorkerSlot worker, const Slot& slot,
                                      const CacheEvent& event,
                                      const BlocksStored& stored) const {
  if (stored.parent && !slot.lossy && !tree_.Owns(worker, stored.parent)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cache event ", event.sequence, " stores blocks below ",
                     stored.parent.value(), ", which is not stored"));
  }
  if (HasNoHash(stored.hashes)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cache event ", event.sequence, " stores a block without a hash"));
  }
  const size_t room = slot.max_blocks - slot.blocks;
  if (stored.hashes.size() <= room) return absl::OkStatus();
  const auto fresh =
      std::count_if(stored.hashes.begin(), stored.hashes.end(),
                    [&](BlockHash hash) { return !tree_.Owns(worker, hash); });
  if (static_cast<size_t>(fresh) <= room) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cache event ", event.sequence, " stores more than the ",
                   slot.max_blocks, " blocks that fit the worker"));
}

absl::Status PrefixIndex::Replace(WorkerSlot worker,
                                  const CacheSnapshot& snapshot) {
  Slot* slot = Find(worker);
  if (slot == nullptr) return UnknownWorker(worker);
  size_t blocks = 0;
  for (const BlocksStored& chain : snapshot.chains) {
    blocks += chain.hashes.size();
    if (HasNoHash(chain.hashes)) {
      return absl::InvalidArgumentError(
          "a cache snapshot holds a block without a hash");
    }
  }
  if (blocks > slot->max_blocks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache snapshot holds ", blocks, " blocks, more than ",
                     slot->max_blocks, ", which fit the worker"));
  }
  Clear(worker);
  for (const BlocksStored& chain : snapshot.chains) Store(worker, chain);
  slot->last_sequence = snapshot.sequence;
  return absl::OkStatus();
}

uint64_t PrefixIndex::ExpectedSequence(WorkerSlot worker) const {
  const Slot* slot = Find(worker);
  return slot == nullptr ? 0 : slot->last_sequence + 1;
}

void PrefixIndex::Predict(WorkerSlot worker, absl::Span<const BlockHash> chain,
                          Instant now) {
  if (Find(worker) == nullptr) return;
  PrefixMatch said(alive_);
  tree_.Match(chain, said.levels());
  said.EndTree();
  if (said.BlocksOf(worker) == static_cast<int>(chain.size())) return;
  predicted_.Add(worker, chain, now);
}

void PrefixIndex::Withdraw(WorkerSlot worker,
                           absl::Span<const BlockHash> chain) {
  if (Find(worker) != nullptr) predicted_.Withdraw(worker, chain);
}

PrefixMatch PrefixIndex::Match(absl::Span<const BlockHash> chain) const {
  PrefixMatch match(alive_);
  tree_.Match(chain, match.levels());
  match.EndTree();
  predicted_.Match(chain, match);
  return match;
}

CacheSnapshot PrefixIndex::Dump(WorkerSlot worker) const {
  CacheSnapshot snapshot;
  const Slot* slot = Find(worker);
  if (slot == nullptr) return snapshot;
  snapshot.sequence = slot->last_sequence;
  tree_.ForEachChain(worker,
                     [&](BlockHash parent, absl::Span<const uint64_t> hashes) {
                       BlocksStored& chain = snapshot.chains.emplace_back();
                       chain.parent = parent;
                       for (uint64_t hash : hashes)
                         chain.hashes.emplace_back(hash);
                     });
  return snapshot;
}

void PrefixIndex::Store(WorkerSlot worker, const BlocksStored& stored) {
  Slot& slot = slots_[worker];
  // What hangs below a forgotten block could match nothing.
  if (slot.lossy && stored.parent && !tree_.Owns(worker, stored.parent)) return;
  const RunTree::Stored result =
      tree_.Store(worker, stored.parent, stored.hashes);
  slot.blocks += result.added;
  memberships_ += result.added;
  if (!result.whole) slot.lossy = true;
  Fit();
}

void PrefixIndex::Remove(WorkerSlot worker,
                         absl::Span<const BlockHash> hashes) {
  Slot& slot = slots_[worker];
  for (BlockHash hash : hashes) {
    predicted_.Remove(worker, hash);
    if (!tree_.Remove(worker, hash)) continue;
    --slot.blocks;
    --memberships_;
  }
  // A hole makes two runs of one.
  Fit();
}

void PrefixIndex::Clear(WorkerSlot worker) {
  Slot& slot = slots_[worker];
  predicted_.Clear(worker);
  tree_.Clear(worker, slot.blocks);
  memberships_ -= std::exchange(slot.blocks, 0);
  slot.lossy = false;
  // Runs that join may need another array before theirs are free.
  Fit();
}

void PrefixIndex::Fit() {
  // An eighth is left for the free places that arenas cannot but have.
  const size_t most_used = options_.max_bytes / 8 * 7;
  while (tree_.used_bytes() > most_used || tree_.bytes() > options_.max_bytes) {
    const bool evicted = tree_.EvictRun([&](WorkerSlot worker, size_t blocks) {
      slots_[worker].blocks -= blocks;
      slots_[worker].lossy = true;
      memberships_ -= blocks;
    });
    if (!evicted) return;
  }
}

PrefixIndex::Slot* PrefixIndex::Find(WorkerSlot worker) {
  return const_cast<Slot*>(std::as_const(*this).Find(worker));
}

const PrefixIndex::Slot* PrefixIndex::Find(WorkerSlot worker) const {
  if (worker >= slots_.size()) return nullptr;
  const Slot& slot = slots_[worker];
  return slot.state == SlotState::kAlive ? &slot : nullptr;
}

void PrefixIndex::CheckStructure() const {
  tree_.CheckStructure();
  size_t blocks = 0;
  for (const Slot& slot : slots_) {
    if (slot.state == SlotState::kAlive) blocks += slot.blocks;
  }
  CHECK(blocks == memberships_) << blocks << " of " << memberships_;
}

}  // namespace penstock
