#include "kvstore/disk/disk_tier.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr int kReadsAtOnce = 16;
constexpr int kWritesAtOnce = 8;
constexpr size_t kMostWaitingWrites = 64;
constexpr int kCopiesAtOnce = 2;
constexpr uint64_t kSegmentsAStore = 32;
constexpr size_t kMostSegments = 256;
// Of a read, until some were measured.
constexpr double kAssumedBytesASecond = 500e6;

uint32_t SlotsPerSegment(const DiskTier::Options& options, uint64_t slot) {
  if (options.slots_per_segment > 0) return options.slots_per_segment;
  const uint64_t slots = options.max_bytes / kSegmentsAStore / slot;
  return static_cast<uint32_t>(std::clamp<uint64_t>(slots, 1, 1 << 20));
}

LayerRange AllLayers(const KvLayout& layout) { return {0, layout.layers}; }

}  // namespace

struct DiskTier::Read {
  TierTicket ticket = 0;
  int page = 0;
  TierRead what;
  SegmentSlot from;
  std::shared_ptr<SegmentFile> file;
  RecordHeaderBytes header = {};
  std::vector<absl::Span<uint8_t>> bytes;
};

struct DiskTier::Write {
  TierTicket ticket = 0;
  TierKey key;
  BlockRef from;
  absl::Duration recompute;
  SegmentSlot to;
  std::shared_ptr<SegmentFile> file;
  RecordHeaderBytes header = {};
  std::vector<absl::Span<const uint8_t>> bytes;
};

DiskTier::DiskTier(Options options, std::unique_ptr<StoreDirectory> directory,
                   std::unique_ptr<DiskIo> io, uint32_t slots_per_segment)
    : options_(std::move(options)),
      identity_{options_.worker.identity,
                options_.worker.pages.layout().block_bytes()},
      directory_(std::move(directory)),
      index_({kSegmentHeaderBytes, SlotBytes(identity_), slots_per_segment,
              options_.max_bytes, kMostSegments}),
      each_(absl::Seconds(identity_.page_bytes / kAssumedBytesASecond)),
      io_(std::move(io)) {}

absl::StatusOr<std::unique_ptr<DiskTier>> DiskTier::Create(Options options) {
  CHECK(options.clock != nullptr);
  const StoreIdentity identity{options.worker.identity,
                               options.worker.pages.layout().block_bytes()};
  const uint64_t slot = SlotBytes(identity);
  const uint32_t slots = SlotsPerSegment(options, slot);
  if (options.max_bytes / 4 < kSegmentHeaderBytes + slots * slot) {
    return absl::InvalidArgumentError(
        absl::StrCat("the disk tier's byte cap is ", options.max_bytes,
                     "; four segments of this model take ",
                     4 * (kSegmentHeaderBytes + slots * slot), " bytes"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<StoreDirectory> directory,
                   StoreDirectory::Open(options.directory, identity));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskIo> io, DiskIo::Create(options.io));
  std::unique_ptr<DiskTier> tier(new DiskTier(
      std::move(options), std::move(directory), std::move(io), slots));
  RETURN_IF_ERROR(tier->Recover());
  return tier;
}

DiskTier::~DiskTier() {
  io_->Finish();
  if (options_.sync != DiskSync::kNever && index_.active()) {
    static_cast<void>(files_[index_.Seal()]->Sync());
  }
}

TierPolicy::Cost DiskTier::CostOf(absl::Duration recompute) const {
  return {absl::ToDoubleSeconds(recompute), absl::ToDoubleSeconds(each_),
          identity_.page_bytes};
}

absl::Status DiskTier::Recover() {
  const std::string& path = directory_->path();
  ASSIGN_OR_RETURN(std::vector<uint64_t> numbers,
                   SegmentFile::List(path, 16 * kMostSegments));
  const BlockHasher& hasher = options_.worker.hasher;
  for (uint64_t number : numbers) {
    last_segment_ = std::max(last_segment_, number);
    auto file = SegmentFile::Open(path, number, identity_, hasher);
    if (!file.ok()) {
      Log(LogLevel::kWarning, "a segment is not used",
          {{"why", std::string(file.status().message())}});
      SegmentFile::Discard(path, number);
      continue;
    }
    auto scan = (*file)->ReadRecords(hasher);
    if (!scan.ok() || scan->records.empty()) {
      static_cast<void>((*file)->Remove());
      continue;
    }
    stats_.bad_records += scan->bad;
    index_.AddSealed(number, scan->slots + (scan->torn ? 1 : 0));
    files_[number] = *std::move(file);
    for (const RecordHeader& record : scan->records) {
      index_.Put(record.key.hash, record.key.parent,
                 CostOf(absl::Microseconds(record.recompute_micros)),
                 {number, record.slot});
    }
  }
  // The cap may have been lowered.
  while (!index_.MayOpen()) {
    const std::optional<uint64_t> oldest = index_.Oldest();
    if (!oldest.has_value()) break;
    index_.Drop(*oldest);
    static_cast<void>(files_[*oldest]->Remove());
    files_.erase(*oldest);
  }
  return absl::OkStatus();
}

void DiskTier::Post(std::function<void()> event) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    mail_.push_back(std::move(event));
  }
  if (options_.worker.wake) options_.worker.wake();
}

TierLookup DiskTier::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup found;
  for (BlockHash hash : chain) {
    if (!index_.Find(hash).has_value()) break;
    index_.Use(hash);
    ++found.blocks;
  }
  found.each = each_;
  found.wait = each_ * static_cast<double>(reads_.size() + reading_);
  return found;
}

TierTicket DiskTier::Fetch(std::vector<TierRead> reads) {
  CHECK(!reads.empty());
  const TierTicket ticket = ++last_ticket_;
  for (size_t i = 0; i < reads.size(); ++i) {
    auto read = std::make_shared<Read>();
    read->ticket = ticket;
    read->page = static_cast<int>(i);
    read->what = reads[i];
    reads_.push_back(std::move(read));
  }
  Progress();
  return ticket;
}

void DiskTier::StartRead(std::shared_ptr<Read> read) {
  const std::optional<SegmentSlot> at = index_.Find(read->what.key.hash);
  if (!at.has_value()) {
    completions_.push_back(
        {read->ticket, read->page, absl::NotFoundError("not on disk")});
    if (options_.worker.wake) options_.worker.wake();
    return;
  }
  ++reading_;
  read->from = *at;
  read->file = files_.at(at->segment);
  const ArenaPages& pages = options_.worker.pages;
  read->bytes = pages.Page(read->what.into.index, AllLayers(pages.layout()));
  DiskIo::Transfer transfer;
  transfer.fd = read->file->fd();
  transfer.offset = SlotOffset(identity_, at->slot);
  transfer.pieces.push_back(PieceOf(read->header));
  for (absl::Span<uint8_t> piece : read->bytes) {
    transfer.pieces.push_back(PieceOf(piece));
  }
  const Instant began = options_.clock->Now();
  io_->Submit({std::move(transfer), [this, read, began](absl::Status status) {
                 if (status.ok()) {
                   status =
                       VerifyRecord(read->header, *read->file, read->from.slot,
                                    &read->what.key, ReadOnly(read->bytes),
                                    options_.worker.hasher);
                 }
                 const absl::Duration took = options_.clock->Now() - began;
                 Post([this, read, status = std::move(status), took] {
                   OnRead(*read, status, took);
                 });
               }});
}

void DiskTier::OnRead(const Read& read, absl::Status status,
                      absl::Duration took) {
  // Those that were read meanwhile shared the time.
  each_ += (took / reading_ - each_) / 8;
  --reading_;
  if (status.ok()) {
    ++stats_.fetched;
  } else {
    ++stats_.bad_pages;
    // It may have been stored anew since.
    if (index_.Find(read.what.key.hash) == read.from) {
      index_.Forget(read.what.key.hash);
    }
    Log(LogLevel::kWarning, "a page on disk is bad",
        {{"why", std::string(status.message())}});
    status = absl::DataLossError(status.message());
  }
  completions_.push_back({read.ticket, read.page, std::move(status)});
}

TierStored DiskTier::Store(const TierKey& key, BlockRef from,
                           absl::Duration recompute) {
  if (index_.Find(key.hash).has_value()) {
    index_.Use(key.hash);
    return {TierStoreVerdict::kHeld};
  }
  if (storing_.contains(key.hash)) return {TierStoreVerdict::kHeld};
  if (recompute <= each_) return {TierStoreVerdict::kNotWorthIt};
  if (writes_.size() >= kMostWaitingWrites) return {TierStoreVerdict::kBusy};
  auto write = std::make_shared<Write>();
  write->ticket = ++last_ticket_;
  write->key = key;
  write->from = from;
  write->recompute = recompute;
  storing_.insert(key.hash);
  writes_.push_back(write);
  Progress();
  return {TierStoreVerdict::kTaken, write->ticket};
}

void DiskTier::StartWrite(std::shared_ptr<Write> write, SegmentSlot slot) {
  ++writing_;
  write->to = slot;
  write->file = files_.at(slot.segment);
  const ArenaPages& pages = options_.worker.pages;
  write->bytes =
      ReadOnly(pages.Page(write->from.index, AllLayers(pages.layout())));
  // The checksum takes a pass over the page: not on the engine's thread.
  auto label = [this, write] {
    RecordHeader record;
    record.key = write->key;
    record.page_bytes = identity_.page_bytes;
    record.page_checksum = options_.worker.hasher.ChecksumPieces(write->bytes);
    record.slot = write->to.slot;
    record.recompute_micros = static_cast<uint32_t>(
        std::clamp<int64_t>(absl::ToInt64Microseconds(write->recompute), 0,
                            std::numeric_limits<uint32_t>::max()));
    write->header = EncodeRecordHeader(record, write->file->header_bytes(),
                                       options_.worker.hasher);
    return absl::OkStatus();
  };
  auto written = [this, write](absl::Status status) {
    Post([this, write, status = std::move(status)] {
      OnWritten(*write, status);
    });
  };
  io_->Submit({std::move(label), [this, write, written](const absl::Status&) {
                 DiskIo::Transfer transfer;
                 transfer.fd = write->file->fd();
                 transfer.offset = SlotOffset(identity_, write->to.slot);
                 transfer.write = true;
                 transfer.pieces.push_back(PieceOf(write->header));
                 for (absl::Span<const uint8_t> piece : write->bytes) {
                   transfer.pieces.push_back(PieceOf(piece));
                 }
                 io_->Submit({std::move(transfer), written});
               }});
}

void DiskTier::OnWritten(const Write& write, const absl::Status& status) {
  --writing_;
  storing_.erase(write.key.hash);
  index_.Settle(write.to);
  SyncIfDone(write.to.segment);
  if (status.ok()) {
    ++stats_.stored;
    index_.Put(write.key.hash, write.key.parent, CostOf(write.recompute),
               write.to);
  } else {
    ++stats_.write_errors;
    Log(LogLevel::kWarning, "a page was not written",
        {{"why", std::string(status.message())}});
  }
  completions_.push_back({write.ticket, 0, status});
}

void DiskTier::FailWrites(const absl::Status& status) {
  ++stats_.write_errors;
  Log(LogLevel::kWarning, "the disk tier stores nothing",
      {{"why", std::string(status.message())}});
  for (const auto& write : std::exchange(writes_, {})) {
    storing_.erase(write->key.hash);
    completions_.push_back({write->ticket, 0, status});
  }
}

void DiskTier::Cancel(TierTicket fetch) {
  std::deque<std::shared_ptr<Read>> kept;
  for (auto& read : reads_) {
    if (read->ticket == fetch) {
      completions_.push_back({read->ticket, read->page,
                              absl::CancelledError("the fetch was cancelled")});
    } else {
      kept.push_back(std::move(read));
    }
  }
  reads_ = std::move(kept);
  if (!completions_.empty() && options_.worker.wake) options_.worker.wake();
}

std::optional<TierCompletion> DiskTier::Poll() {
  std::vector<std::function<void()>> mail;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    mail.swap(mail_);
  }
  for (auto& event : mail) event();
  if (!mail.empty()) Progress();
  if (completions_.empty()) return std::nullopt;
  TierCompletion completion = std::move(completions_.front());
  completions_.pop_front();
  return completion;
}

void DiskTier::Progress() {
  DropCleaned();
  while (!reads_.empty() && reading_ < kReadsAtOnce) {
    std::shared_ptr<Read> read = std::move(reads_.front());
    reads_.pop_front();
    StartRead(std::move(read));
  }
  while (!writes_.empty() && writing_ < kWritesAtOnce) {
    const std::optional<SegmentSlot> slot = index_.TakeSlot();
    if (!slot.has_value()) {
      OpenSegment();
      break;
    }
    StartWrite(std::move(writes_.front()), *slot);
    writes_.pop_front();
  }
  while (!copies_.empty() && copying_ < kCopiesAtOnce) {
    StartCopy(std::move(copies_.front()));
    copies_.pop_front();
  }
}

DiskTierStats DiskTier::stats() const {
  DiskTierStats stats = stats_;
  stats.pages = index_.pages();
  stats.bytes = index_.footprint();
  stats.evicted = index_.evicted();
  return stats;
}

}  // namespace penstock
