// The destination's half of SimTransport.

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/simulator/sim_page.h"
#include "tools/simulator/sim_transport.h"

namespace penstock {

void SimTransport::PrepareReceive(TransferId transfer,
                                  const std::vector<BlockRef>& blocks) {
  // Nobody looks at each page where nothing is validated. What is fenced by its
  // source may be prepared again before the key of its transfer is gone.
  if (options_.receiver_validates) {
    ledger_.Prepare(transfer, blocks);
  } else {
    keys_.emplace(transfer, false);
  }
}

bool SimTransport::Revoke(TransferId transfer) {
  if (options_.receiver_validates) return ledger_.Revoke(transfer);
  auto key = keys_.find(transfer);
  if (key == keys_.end()) return true;
  if (!std::exchange(key->second, true)) {
    Later(options_.fence_time, [this, transfer] { keys_.erase(transfer); });
  }
  return false;
}

std::optional<PageArrival> SimTransport::PollArrival() {
  if (arrivals_.empty()) return std::nullopt;
  PageArrival front = std::move(arrivals_.front());
  arrivals_.pop_front();
  return front;
}

void SimTransport::Write(const Page& page, size_t from, size_t to) {
  size_t at = 0;  // in the payload
  for (absl::Span<uint8_t> piece :
       pages_.Page(page.header.block.index, page.header.layers)) {
    const size_t begin = std::max(at, from);
    const size_t end = std::min(at + piece.size(), to);
    if (begin < end) {
      std::memcpy(piece.data() + (begin - at), page.payload.data() + begin,
                  end - begin);
    }
    at += piece.size();
  }
  const SimNode& self = node();
  if (self.on_write) self.on_write(page.header.block.index);
  if (network_->on_land) {
    network_->on_land(self_, page.header.transfer, page.header.block);
  }
}

absl::Status SimTransport::Admit(const Page& page, ReceiveChannel& channel) {
  absl::Status fits = CheckPageHeader(page.header, network_->layout_);
  if (!fits.ok()) return fits;
  const std::optional<PageRefusal> refusal =
      dropped_.contains(page.source)
          ? PageRefusal::kNotPrepared
          : ledger_.BeginLanding(page.header, channel);
  return refusal.has_value() ? RefusalStatus(*refusal, page.source.name)
                             : absl::OkStatus();
}

void SimTransport::Receive(PagePtr page, ReceiveChannel& channel,
                           const std::shared_ptr<SimStream>& stream) {
  const absl::Status admitted = Admit(*page, channel);
  if (!admitted.ok()) {
    Report(*page, std::nullopt, clock_->Now(), admitted);
    Acknowledge(*page, admitted, stream);
    return;
  }
  // The bytes come in one after the other.
  Write(*page, 0, page->payload.size() / 2);
  const Instant began = clock_->Now();
  if (options_.landing <= absl::ZeroDuration()) {
    FinishLanding(*page, began, stream);
    return;
  }
  Later(options_.landing, [this, page = std::move(page), began, stream] {
    FinishLanding(*page, began, stream);
  });
}

void SimTransport::Acknowledge(const Page& page, const absl::Status& verdict,
                               const std::shared_ptr<SimStream>& stream) {
  if (stream == nullptr || !page.acknowledge) return;
  stream->Send(SimStream::kServer,
               [post = page.post, verdict,
                bytes = verdict.ok() ? page.payload.size()
                                     : 0](SimStreamHandler& handler) {
                 static_cast<Outbound&>(handler).OnAck(post, bytes, verdict);
               });
}

uint64_t SimTransport::LandedChecksum(const Page& page) {
  const std::vector<absl::Span<uint8_t>> landed =
      pages_.Page(page.header.block.index, page.header.layers);
  if (network_->on_page) {
    for (absl::Span<uint8_t> piece : landed) {
      network_->on_page(page.header.transfer, piece);
    }
  }
  return network_->hasher_->ChecksumPieces(ReadOnly(landed));
}

void SimTransport::Report(const Page& page,
                          std::optional<uint64_t> landed_checksum,
                          Instant began, absl::Status status) {
  PageArrival arrival;
  arrival.transfer = page.header.transfer;
  arrival.block = page.header.block;
  arrival.layers = page.header.layers;
  arrival.bytes = page.payload.size();
  arrival.landed = landed_checksum.has_value();
  arrival.checksum = landed_checksum.value_or(0);
  arrival.status = std::move(status);
  arrival.began = began;
  arrival.ended = clock_->Now();
  arrivals_.push_back(std::move(arrival));
}

void SimTransport::Spoil(TransferId transfer, BlockRef block) {
  auto page = std::make_shared<Page>();
  page->source = self_;
  page->header.transfer = transfer;
  page->header.destination = self_.incarnation;
  page->header.block = block;
  page->header.layers = {0, network_->layout_.layers};
  page->header.sequence = 1;
  page->header.layout = network_->layout_.id();
  page->payload.assign(network_->layout_.block_bytes(), 0xEE);
  page->header.payload_bytes = page->payload.size();
  page->acknowledge = false;
  if (!options_.receiver_validates) {
    LandUnchecked(*page);
    return;
  }
  node().Handle([this, page] {
    ReceiveChannel channel;
    Receive(page, channel, nullptr);
  });
}

void SimTransport::FinishLanding(const Page& page, Instant began,
                                 const std::shared_ptr<SimStream>& stream) {
  Write(page, page.payload.size() / 2, page.payload.size());
  const uint64_t checksum = LandedChecksum(page);
  absl::Status verdict;
  if (checksum != page.header.payload_checksum) {
    verdict = RefusalStatus(PageRefusal::kBadPayloadChecksum, page.source.name);
  }
  if (ledger_.EndLanding(page.header.transfer).revoked ||
      dropped_.contains(page.source)) {
    verdict = RefusalStatus(PageRefusal::kNotPrepared, "revoked meanwhile");
  }
  Report(page, checksum, began, verdict);
  Acknowledge(page, verdict, stream);
}

// Nobody looks at generations: whoever holds the key writes.
void SimTransport::LandUnchecked(const Page& page) {
  if (!keys_.contains(page.header.transfer) || dropped_.contains(page.source) ||
      !pages_.Holds(page.header.block.index, page.header.layers)) {
    return;
  }
  Write(page, 0, page.payload.size());
  const uint64_t checksum = LandedChecksum(page);
  Report(page, checksum, clock_->Now(), absl::OkStatus());
  node().Handle([] {});  // there is news
  SimNode* source = network_->Living(page.source);
  if (!page.acknowledge || source == nullptr ||
      network_->Blocked(node(), *source)) {
    return;
  }
  network_->At(network_->Arrival(node(), *source),
               [network = network_, key = page.source, kind = caps_.kind,
                post = page.post, bytes = page.payload.size()] {
                 SimNode* source = network->Living(key);
                 if (source == nullptr) return;
                 auto transport = source->transports.find(kind);
                 if (transport == source->transports.end()) return;
                 source->Handle([sender = transport->second, post, bytes] {
                   sender->OnAck(post, bytes, absl::OkStatus());
                 });
               });
}

}  // namespace penstock
