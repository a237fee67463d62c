#include "common/transfer/progress/page_receiver.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {
namespace {

constexpr size_t kMaxWaitingRefusals = 4096;

}  // namespace

PageReceiver::PageReceiver(const TransportOptions& options, WakeBell* bell)
    : options_(options),
      bell_(bell),
      pages_(options.arena, options.layout),
      ledger_(options.self.incarnation) {}

void PageReceiver::Prepare(TransferId transfer,
                           const std::vector<BlockRef>& blocks) {
  for (BlockRef block : blocks) {
    CHECK(block.index < pages_.blocks())
        << "block " << block.index << " of " << pages_.blocks();
  }
  std::lock_guard lock(mutex_);
  ledger_.Prepare(transfer, blocks);
}

bool PageReceiver::Revoke(TransferId transfer) {
  std::lock_guard lock(mutex_);
  return ledger_.Revoke(transfer);
}

void PageReceiver::Drop(const WorkerKey& source) {
  std::lock_guard lock(mutex_);
  dropped_.insert(source);
}

std::optional<PageArrival> PageReceiver::PollArrival() {
  std::lock_guard lock(mutex_);
  if (arrivals_.empty()) return std::nullopt;
  PageArrival arrival = std::move(arrivals_.front());
  arrivals_.pop_front();
  return arrival;
}

bool PageReceiver::dropped(const WorkerKey& source) const {
  std::lock_guard lock(mutex_);
  return dropped_.contains(source);
}

absl::Status PageReceiver::Begin(const WorkerKey& source,
                                 const PageHeader& header,
                                 ReceiveChannel& channel) {
  absl::Status fits = CheckPageHeader(header, layout());
  std::lock_guard lock(mutex_);
  if (fits.ok()) {
    std::optional<PageRefusal> refusal =
        dropped_.contains(source) ? PageRefusal::kNotPrepared
                                  : ledger_.BeginLanding(header, channel);
    if (!refusal) return absl::OkStatus();
    fits = RefusalStatus(*refusal, source.name);
  }
  Report(header, std::nullopt, fits);
  return fits;
}

std::vector<absl::Span<uint8_t>> PageReceiver::Target(
    const PageHeader& header) const {
  return pages_.Page(header.block.index, header.layers);
}

absl::Status PageReceiver::Finish(const WorkerKey& source,
                                  const PageHeader& header) {
  std::vector<absl::Span<uint8_t>> page = Target(header);
  if (options_.faults != nullptr) options_.faults->OnLanded(header, page);
  uint64_t checksum = hasher().ChecksumPieces(ReadOnly(page));
  absl::Status verdict;
  if (checksum != header.payload_checksum) {
    verdict = RefusalStatus(PageRefusal::kBadPayloadChecksum, source.name);
  }
  std::lock_guard lock(mutex_);
  ReceiveLedger::LandingEnd end = ledger_.EndLanding(header.transfer);
  if (end.revoked || dropped_.contains(source)) {
    verdict = RefusalStatus(PageRefusal::kNotPrepared, "revoked meanwhile");
  }
  if (end.fenced) bell_->Mark();
  Report(header, checksum, verdict);
  return verdict;
}

void PageReceiver::Abandon(const PageHeader& header) {
  uint64_t checksum = hasher().ChecksumPieces(ReadOnly(Target(header)));
  std::lock_guard lock(mutex_);
  if (ledger_.EndLanding(header.transfer).fenced) bell_->Mark();
  Report(header, checksum,
         RefusalStatus(PageRefusal::kTruncated, "the page did not come whole"));
}

bool PageReceiver::revoking(TransferId transfer) const {
  std::lock_guard lock(mutex_);
  return ledger_.revoking(transfer);
}

void PageReceiver::Report(const PageHeader& header,
                          std::optional<uint64_t> checksum,
                          absl::Status status) {
  if (!checksum && arrivals_.size() >= kMaxWaitingRefusals) return;
  arrivals_.push_back({header.transfer, header.block, header.layers,
                       header.payload_bytes, checksum.has_value(),
                       checksum.value_or(0), std::move(status)});
  bell_->Mark();
}

}  // namespace penstock
