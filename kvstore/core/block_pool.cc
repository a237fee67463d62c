#include "kvstore/core/block_pool.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

BlockHold::BlockHold(BlockHold&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      ref_(other.ref_),
      kept_(std::exchange(other.kept_, false)) {}

BlockHold& BlockHold::operator=(BlockHold&& other) noexcept {
  if (this != &other) {
    Reset();
    pool_ = std::exchange(other.pool_, nullptr);
    ref_ = other.ref_;
    kept_ = std::exchange(other.kept_, false);
  }
  return *this;
}

BlockHold BlockHold::Share() const {
  CHECK(pool_ != nullptr);
  pool_->AddReference(ref_);
  return BlockHold(pool_, ref_);
}

void BlockHold::Reset() {
  if (BlockPool* pool = std::exchange(pool_, nullptr)) {
    pool->DropReference(ref_, std::exchange(kept_, false));
  }
}

void BlockHold::SetKept(bool kept) {
  if (kept_ == kept) return;
  CHECK(pool_ != nullptr);
  kept_ = kept;
  pool_->AddKept(ref_, kept ? 1 : -1);
}

TransferPin::TransferPin(TransferPin&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), ref_(other.ref_) {}

TransferPin& TransferPin::operator=(TransferPin&& other) noexcept {
  if (this != &other) {
    Reset();
    pool_ = std::exchange(other.pool_, nullptr);
    ref_ = other.ref_;
  }
  return *this;
}

void TransferPin::Reset() {
  if (BlockPool* pool = std::exchange(pool_, nullptr)) {
    pool->DropTransfer(ref_);
  }
}

BlockPool::BlockPool(int total) : blocks_(total) {
  CHECK(total >= 0);
  free_.reserve(total);
  for (int i = total - 1; i >= 0; --i) free_.push_back(i);
  counts_.free = total;
}

BlockState BlockPool::StateOf(const Block& block) {
  if (block.quarantined) return BlockState::kQuarantined;
  if (block.transfers > 0) return BlockState::kInTransfer;
  if (block.references > 0) return BlockState::kActive;
  if (block.cached) return BlockState::kCached;
  return BlockState::kFree;
}

bool BlockPool::KeptOnly(const Block& block) {
  return StateOf(block) == BlockState::kActive &&
         block.references == block.kept;
}

BlockState BlockPool::StateOf(BlockIndex index) const {
  CHECK(index >= 0 && index < total());
  return StateOf(blocks_[index]);
}

int& BlockPool::CountOf(BlockState state) {
  switch (state) {
    case BlockState::kQuarantined:
      return counts_.quarantined;
    case BlockState::kInTransfer:
      return counts_.in_transfer;
    case BlockState::kActive:
      return counts_.active;
    case BlockState::kCached:
      return counts_.cached;
    case BlockState::kFree:
      break;
  }
  return counts_.free;
}

template <typename Change>
void BlockPool::Update(BlockRef ref, Change change) {
  Block& block = blocks_[ref.index];
  BlockState before = StateOf(block);
  bool was_reclaimable = before == BlockState::kCached;
  kept_ -= KeptOnly(block);
  change(block);
  kept_ += KeptOnly(block);
  BlockState after = StateOf(block);
  bool reclaimable = after == BlockState::kCached;
  if (before != after) {
    --CountOf(before);
    ++CountOf(after);
    if (after == BlockState::kFree) {
      ++block.generation;
      free_.push_back(ref.index);
    }
  }
  if (observer_ != nullptr && block.cached && was_reclaimable != reclaimable) {
    if (reclaimable) {
      observer_->OnReclaimable(ref);
    } else {
      observer_->OnInUse(ref);
    }
  }
}

std::optional<std::vector<BlockHold>> BlockPool::TryAllocate(int count) {
  CHECK(count >= 0);
  if (count > static_cast<int>(free_.size())) return std::nullopt;
  std::vector<BlockHold> holds;
  holds.reserve(count);
  for (int i = 0; i < count; ++i) {
    BlockIndex index = free_.back();
    free_.pop_back();
    BlockRef ref{index, blocks_[index].generation};
    Update(ref, [](Block& b) { b.references = 1; });
    holds.push_back(BlockHold(this, ref));
  }
  return holds;
}

BlockHold BlockPool::TryHold(BlockRef ref) {
  if (!IsLive(ref)) return {};
  AddReference(ref);
  return BlockHold(this, ref);
}

TransferPin BlockPool::Pin(BlockRef ref) {
  Live(ref);
  Update(ref, [](Block& b) { ++b.transfers; });
  return TransferPin(this, ref);
}

void BlockPool::Quarantine(BlockRef ref) {
  Live(ref);
  Update(ref, [](Block& b) { b.quarantined = true; });
}

void BlockPool::Reclaim(BlockRef ref) {
  CHECK(Live(ref).quarantined);
  Update(ref, [](Block& b) { b.quarantined = false; });
}

void BlockPool::SetCached(BlockRef ref, bool cached) {
  Live(ref);
  Update(ref, [cached](Block& b) { b.cached = cached; });
}

bool BlockPool::IsLive(BlockRef ref) const {
  return ref.index >= 0 && ref.index < total() &&
         blocks_[ref.index].generation == ref.generation &&
         StateOf(blocks_[ref.index]) != BlockState::kFree;
}

int BlockPool::References(BlockRef ref) const { return Live(ref).references; }

int BlockPool::Users(BlockRef ref) const {
  const Block& block = Live(ref);
  return block.references - block.kept;
}

BlockPool::Block& BlockPool::Live(BlockRef ref) {
  CHECK(IsLive(ref)) << "block " << ref.index << " generation "
                     << ref.generation << " is not live";
  return blocks_[ref.index];
}

const BlockPool::Block& BlockPool::Live(BlockRef ref) const {
  return const_cast<BlockPool*>(this)->Live(ref);
}

void BlockPool::AddReference(BlockRef ref) {
  Live(ref);
  Update(ref, [](Block& b) { ++b.references; });
}

void BlockPool::DropReference(BlockRef ref, bool kept) {
  CHECK(Live(ref).references > 0);
  Update(ref, [kept](Block& b) {
    --b.references;
    b.kept -= kept;
  });
}

void BlockPool::AddKept(BlockRef ref, int change) {
  Live(ref);
  Update(ref, [change](Block& b) { b.kept += change; });
}

void BlockPool::DropTransfer(BlockRef ref) {
  CHECK(Live(ref).transfers > 0);
  Update(ref, [](Block& b) { --b.transfers; });
}

void BlockPool::CheckConservation() const {
  BlockCounts recount;
  BlockPool scratch(0);
  int kept = 0;
  for (const Block& block : blocks_) {
    ++scratch.CountOf(StateOf(block));
    kept += KeptOnly(block);
  }
  recount = scratch.counts_;
  CHECK(recount.quarantined == counts_.quarantined &&
        recount.in_transfer == counts_.in_transfer &&
        recount.active == counts_.active && recount.cached == counts_.cached &&
        recount.free == counts_.free && kept == kept_ &&
        counts_.free == static_cast<int>(free_.size()) &&
        counts_.total() == total());
}

}  // namespace penstock
