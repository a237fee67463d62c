#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/model/block_ref.h"

namespace penstock {

class BlockPool;

// A block is in exactly one state: the first that applies, in this order.
enum class BlockState { kQuarantined, kInTransfer, kActive, kCached, kFree };

struct BlockCounts {
  int quarantined = 0;
  int in_transfer = 0;
  int active = 0;
  int cached = 0;
  int free = 0;
  int total() const {
    return quarantined + in_transfer + active + cached + free;
  }
};

// One reference to a block, released when it dies. Move-only, so that no pin
// can be dropped twice or forgotten. Must not outlive its pool.
class BlockHold {
 public:
  BlockHold() = default;
  BlockHold(BlockHold&& other) noexcept;
  BlockHold& operator=(BlockHold&& other) noexcept;
  ~BlockHold() { Reset(); }

  explicit operator bool() const { return pool_ != nullptr; }
  BlockRef ref() const { return ref_; }
  BlockIndex index() const { return ref_.index; }
  // A second reference to the same block. Precondition: not empty.
  BlockHold Share() const;
  void Reset();
  // Whoever has it gives it up to anybody who needs the block: a block of such
  // references alone counts as one to be had. Not of a shared one. Precondition
  // of true: not empty.
  void SetKept(bool kept);

 private:
  friend class BlockPool;
  BlockHold(BlockPool* pool, BlockRef ref) : pool_(pool), ref_(ref) {}
  BlockPool* pool_ = nullptr;
  BlockRef ref_;
  bool kept_ = false;
};

// Keeps a block in transfer: bytes may be read from it or written to it by a
// transport, so it is neither freed nor reused whatever its references do.
class TransferPin {
 public:
  TransferPin() = default;
  TransferPin(TransferPin&& other) noexcept;
  TransferPin& operator=(TransferPin&& other) noexcept;
  ~TransferPin() { Reset(); }

  explicit operator bool() const { return pool_ != nullptr; }
  BlockRef ref() const { return ref_; }
  void Reset();

 private:
  friend class BlockPool;
  TransferPin(BlockPool* pool, BlockRef ref) : pool_(pool), ref_(ref) {}
  BlockPool* pool_ = nullptr;
  BlockRef ref_;
};

// Told when a cached block starts or stops being reclaimable, so that the
// cache keeps an eviction order without asking.
class CachedBlockObserver {
 public:
  virtual ~CachedBlockObserver() = default;
  virtual void OnReclaimable(BlockRef block) = 0;
  virtual void OnInUse(BlockRef block) = 0;
};

// Counts and reference-counts the blocks of one arena. Owns no memory; blocks
// are only indices. The five states sum to the total, always. Single-threaded:
// the engine thread's.
class BlockPool {
 public:
  // Precondition: total >= 0.
  explicit BlockPool(int total);

  // All or nothing; never evicts: a caller that wants more asks the cache.
  std::optional<std::vector<BlockHold>> TryAllocate(int count);

  // One more reference to a live block (active or cached). Empty when the
  // generation is over.
  BlockHold TryHold(BlockRef ref);

  // Precondition: the block is live (held, pinned or cached).
  TransferPin Pin(BlockRef ref);

  // Takes a live block out of use until Reclaim: a write may still land in it
  // and no fence says otherwise. Idempotent.
  void Quarantine(BlockRef ref);
  // The write can land no more. Precondition: quarantined.
  void Reclaim(BlockRef ref);

  // The prefix cache's: a cached block survives its last reference.
  // Precondition: the block is live.
  void SetCached(BlockRef ref, bool cached);
  void SetObserver(CachedBlockObserver* observer) { observer_ = observer; }

  bool IsLive(BlockRef ref) const;
  int References(BlockRef ref) const;
  BlockState StateOf(BlockIndex index) const;

  BlockCounts counts() const { return counts_; }
  int total() const { return static_cast<int>(blocks_.size()); }
  int free() const { return counts_.free; }
  // Active blocks of which every reference is kept: what giving those up would
  // free or leave cached.
  int kept() const { return kept_; }
  bool KeptOnly(BlockRef ref) const { return KeptOnly(Live(ref)); }
  // References of the block that are not kept.
  int Users(BlockRef ref) const;

  // Recounts every block and CHECKs it against the running counts.
  void CheckConservation() const;

 private:
  friend class BlockCensus;
  friend class BlockHold;
  friend class TransferPin;

  struct Block {
    uint32_t generation = 1;
    int references = 0;
    int kept = 0;  // of the references
    int transfers = 0;
    bool quarantined = false;
    bool cached = false;
  };

  Block& Live(BlockRef ref);
  const Block& Live(BlockRef ref) const;
  void AddReference(BlockRef ref);
  void DropReference(BlockRef ref, bool kept);
  void AddKept(BlockRef ref, int change);
  void DropTransfer(BlockRef ref);
  // Applies `change` to a block and keeps counts, free list and observer true.
  template <typename Change>
  void Update(BlockRef ref, Change change);
  static BlockState StateOf(const Block& block);
  static bool KeptOnly(const Block& block);
  int& CountOf(BlockState state);

  std::vector<Block> blocks_;
  std::vector<BlockIndex> free_;  // a stack: recently used pages are warm
  BlockCounts counts_;
  int kept_ = 0;
  CachedBlockObserver* observer_ = nullptr;
};

}  // namespace penstock
