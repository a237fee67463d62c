#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/env/clock.h"
#include "kvstore/core/kv_tier.h"
#include "kvstore/disk/disk_copy.h"
#include "kvstore/disk/disk_io.h"
#include "kvstore/disk/segment_file.h"
#include "kvstore/disk/segment_index.h"
#include "kvstore/disk/store_directory.h"

namespace penstock {

// How much a crash of the whole machine may cost. A process that is killed
// loses nothing that was acknowledged: the system has its writes.
enum class DiskSync {
  kNever,    // whatever the system had not written back
  kSegment,  // the segments that were not full
  kPage,     // nothing; each store waits for the device
};

// What has happened to a tier since it was opened.
struct DiskTierStats {
  uint64_t pages = 0;  // held now
  uint64_t bytes = 0;  // of files now
  uint64_t stored = 0;
  uint64_t fetched = 0;
  uint64_t bad_pages = 0;    // did not have their checksum or hash
  uint64_t bad_records = 0;  // found so when the store was opened
  uint64_t evicted = 0;      // given up for want of room
  uint64_t copied = 0;       // written again to free their segments
  uint64_t write_errors = 0;
};

// KV pages in files, for a worker that comes back: segments that are only
// appended to (segment_format.h), under a directory that is this store's as
// long as it is open. Of the files nothing is believed: every record is bound
// to its segment and place by a keyed checksum, its hash is that of its tokens,
// its bytes have the checksum they were stored with; what does not is a miss
// and counted. Torn tails and flipped bits cost what they touch.
//
// Thread rule: as KvTier. Files are touched by the threads of a DiskIo only,
// after Create.
class DiskTier : public KvTier {
 public:
  struct Options {
    TierWorker worker;
    // Made if missing. Stores of other models, layouts or numerics may share
    // it: each has a folder of its own.
    std::string directory;
    uint64_t max_bytes = 0;  // of this store's files together
    DiskIo::Kind io = DiskIo::Kind::kBest;
    DiskSync sync = DiskSync::kSegment;
    // Thread-safe; outlives the tier.
    const Clock* clock = nullptr;
    // Pages of a segment; 0: as many as make a 32nd of max_bytes.
    uint32_t slots_per_segment = 0;
  };

  // Reads the record headers of what is there. INVALID_ARGUMENT: max_bytes does
  // not hold four pages. FAILED_PRECONDITION: another process has the store
  // open. UNAVAILABLE: no io_uring, but it was asked for. Else what the file
  // system says.
  static absl::StatusOr<std::unique_ptr<DiskTier>> Create(Options options);

  // Waits for what is being written.
  ~DiskTier() override;

  TierLookup Lookup(absl::Span<const BlockHash> chain) override;
  TierTicket Fetch(std::vector<TierRead> reads) override;
  TierStored Store(const TierKey& key, BlockRef from,
                   absl::Duration recompute) override;
  void Cancel(TierTicket fetch) override;
  std::optional<TierCompletion> Poll() override;

  DiskTierStats stats() const;
  DiskIo::Kind io() const { return io_->kind(); }

 private:
  struct Read;
  struct Write;

  DiskTier(Options options, std::unique_ptr<StoreDirectory> directory,
           std::unique_ptr<DiskIo> io, uint32_t slots_per_segment);

  TierPolicy::Cost CostOf(absl::Duration recompute) const;
  absl::Status Recover();

  // To be run by the next Poll. Any thread.
  void Post(std::function<void()> event);
  void Progress();

  void StartRead(std::shared_ptr<Read> read);
  void OnRead(const Read& read, absl::Status status, absl::Duration took);
  void StartWrite(std::shared_ptr<Write> write, SegmentSlot slot);
  void OnWritten(const Write& write, const absl::Status& status);
  void FailWrites(const absl::Status& status);

  // In disk_cleaning.cc.
  void OpenSegment();
  void OnOpened(uint64_t number, std::shared_ptr<SegmentFile> file,
                const absl::Status& status);
  void SealActive();
  void SyncIfDone(uint64_t number);
  void Clean();
  void StartCopy(std::shared_ptr<DiskCopy> copy);
  void OnCopied(const DiskCopy& copy, const absl::Status& status);
  void DropCleaned();

  const Options options_;
  const StoreIdentity identity_;
  const std::unique_ptr<StoreDirectory> directory_;

  // The engine thread's.
  SegmentIndex index_;
  std::map<uint64_t, std::shared_ptr<SegmentFile>> files_;
  uint64_t last_segment_ = 0;
  bool opening_ = false;
  std::vector<uint64_t> cleaning_;  // to go when nothing of them is copied
  std::deque<std::shared_ptr<DiskCopy>> copies_;
  int copying_ = 0;
  std::deque<std::shared_ptr<Read>> reads_;  // waiting
  int reading_ = 0;
  std::deque<std::shared_ptr<Write>> writes_;  // waiting
  int writing_ = 0;
  std::set<BlockHash> storing_;
  std::deque<TierCompletion> completions_;
  TierTicket last_ticket_ = 0;
  absl::Duration each_;
  DiskTierStats stats_;

  std::mutex mutex_;
  std::vector<std::function<void()>> mail_;  // guarded by mutex_

  const std::unique_ptr<DiskIo> io_;
};

}  // namespace penstock
