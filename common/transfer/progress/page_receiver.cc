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
                                  const PageHeader& header, Instant began) {
  if (options_.faults != nullptr) {
    options_.faults->OnLanded(header, Target(header));
  }
  const Landing landing = Look(header, began);
  absl::Status verdict;
  if (landing.checksum != header.payload_checksum) {
    verdict = RefusalStatus(PageRefusal::kBadPayloadChecksum, source.name);
  }
  std::lock_guard lock(mutex_);
  ReceiveLedger::LandingEnd end = ledger_.EndLanding(header.transfer);
  if (end.revoked || dropped_.contains(source)) {
    verdict = RefusalStatus(PageRefusal::kNotPrepared, "revoked meanwhile");
  }
  if (end.fenced) bell_->Mark();
  Report(header, landing, verdict);
  return verdict;
}

void PageReceiver::Abandon(const PageHeader& header, Instant began) {
  const Landing landing = Look(header, began);
  std::lock_guard lock(mutex_);
  if (ledger_.EndLanding(header.transfer).fenced) bell_->Mark();
  Report(header, landing,
         RefusalStatus(PageRefusal::kTruncated, "the page did not come whole"));
}

PageReceiver::Landing PageReceiver::Look(const PageHeader& header,
                                         Instant began) const {
  const Instant ended = Now();
  return {hasher().ChecksumPieces(ReadOnly(Target(header))), began, ended};
}

bool PageReceiver::revoking(TransferId transfer) const {
  std::lock_guard lock(mutex_);
  return ledger_.revoking(transfer);
}

void PageReceiver::Report(const PageHeader& header,
                          const std::optional<Landing>& landing,
                          absl::Status status) {
  if (!landing && arrivals_.size() >= kMaxWaitingRefusals) return;
  PageArrival arrival;
  arrival.transfer = header.transfer;
  arrival.block = header.block;
  arrival.layers = header.layers;
  arrival.bytes = header.payload_bytes;
  if (landing) {
    arrival.landed = true;
    arrival.checksum = landing->checksum;
    arrival.began = landing->began;
    arrival.ended = landing->ended;
  }
  arrival.status = std::move(status);
  arrivals_.push_back(std::move(arrival));
  bell_->Mark();
}

}  // namespace penstock
