#include "decode_worker/core/decode_role.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/sometimes.h"
#include "common/peer/error_reason.h"

namespace penstock {

DecodeRole::DecodeRole(const WorkerContext* context) : context_(context) {}

DecodeRole::~DecodeRole() { context_->timers->Cancel(starved_timer_); }

void DecodeRole::StartLeg(LegRequest leg, LegSink* sink) {
  TransferId id = leg.transfer();
  if (leg.partner.worker.empty()) {
    if (local_.contains(id)) {
      sink->OnFinished(MakeError(ErrorReason::kInternal, "leg runs already"));
      return;
    }
    auto [it, added] = local_.emplace(
        id, std::make_unique<LocalGeneration>(context_, std::move(leg), sink));
    it->second->Start();
    return;
  }
  std::unique_ptr<DecodeTransfer>& transfer = transfers_[id];
  if (transfer == nullptr) {
    transfer = std::make_unique<DecodeTransfer>(context_, id, &unsettled_);
    uncredited_.push_back(id);
  } else if (transfer->released()) {
    // Its other half came and went first.
    sink->OnFinished(
        MakeError(ErrorReason::kTransferFailed, "the prefill worker gave up"));
    return;
  } else if (transfer->has_leg()) {
    sink->OnFinished(MakeError(ErrorReason::kInternal, "leg runs already"));
    return;
  }
  transfer->OnLeg(std::move(leg), sink);
}

void DecodeRole::CancelLeg(TransferId id) {
  absl::Status cancelled =
      MakeError(ErrorReason::kCancelled, "the leg was cancelled");
  if (auto it = local_.find(id); it != local_.end()) {
    it->second->End(cancelled);
  }
  if (auto it = transfers_.find(id); it != transfers_.end()) {
    it->second->Fail(cancelled);
  }
}

DecodeTransfer* DecodeRole::Find(const WorkerKey& peer, TransferId id) {
  auto it = transfers_.find(id);
  // Only the peer that made the offer may speak for it.
  if (it == transfers_.end() || it->second->peer() != peer) return nullptr;
  return it->second.get();
}

void DecodeRole::OnOffer(const WorkerKey& peer, Offer offer) {
  auto reject = [&](ErrorReason reason, absl::string_view why) {
    context_->peers->Send(peer, Reject{offer.transfer, CodeOf(reason),
                                       std::string(why), absl::Seconds(1)});
  };
  const bool refuses = draining_ && !keeps(offer.transfer.request);
  std::unique_ptr<DecodeTransfer>& transfer = transfers_[offer.transfer];
  if (transfer != nullptr) {
    if (transfer->has_offer() && transfer->peer() != peer) {
      reject(ErrorReason::kIncompatibleWorker, "another worker offered it");
      return;
    }
    if (transfer->state() >= DecodeState::kRevoking) {
      reject(ErrorReason::kTransferFailed, "the transfer has ended here");
      return;
    }
    transfer->OnOffer(peer, std::move(offer));
    return;
  }
  if (refuses ||
      static_cast<int>(transfers_.size()) > context_->options.max_transfers) {
    transfers_.erase(offer.transfer);
    reject(refuses ? ErrorReason::kDraining : ErrorReason::kQueueFull,
           refuses ? "the decode worker drains"
                   : "the decode worker has too many transfers");
    return;
  }
  TransferId id = offer.transfer;
  transfer = std::make_unique<DecodeTransfer>(context_, id, &unsettled_);
  uncredited_.push_back(id);
  transfer->OnOffer(peer, std::move(offer));
}

void DecodeRole::OnPeerMessage(const WorkerKey& peer, HandoffMessage message) {
  if (auto* offer = std::get_if<Offer>(&message)) {
    OnOffer(peer, std::move(*offer));
    return;
  }
  TransferId id = TransferOf(message);
  DecodeTransfer* transfer = Find(peer, id);
  if (transfer == nullptr) {
    // Answered, so that a prefill worker does not wait for a lease to expire.
    if (std::holds_alternative<Commit>(message) ||
        std::holds_alternative<ChunkDone>(message)) {
      context_->peers->Send(peer, Abort{id, absl::StatusCode::kNotFound,
                                        "the decode worker does not know this "
                                        "transfer"});
    }
    return;
  }
  if (auto* chunk = std::get_if<ChunkDone>(&message)) {
    transfer->OnChunkDone(std::move(*chunk));
  } else if (auto* commit = std::get_if<Commit>(&message)) {
    transfer->OnCommit(std::move(*commit));
  } else if (std::holds_alternative<Renew>(message)) {
    transfer->OnRenew();
  } else if (auto* abort = std::get_if<Abort>(&message)) {
    transfer->OnAbort(*abort);
  } else if (std::holds_alternative<FenceAck>(message)) {
    transfer->OnFenceAck();
  }
}

void DecodeRole::OnPeerLost(const WorkerKey& peer, const absl::Status& why) {
  for (auto& [id, transfer] : transfers_) {
    if (transfer->has_offer() && transfer->peer() == peer) {
      transfer->OnPeerLost(why);
    }
  }
}

void DecodeRole::OnArrival(TransportKind transport,
                           const PageArrival& arrival) {
  if (auto it = transfers_.find(arrival.transfer); it != transfers_.end()) {
    it->second->OnArrival(transport, arrival);
  }
}

bool DecodeRole::GrantCredits() {
  bool progress = false;
  bool blocked = starved_since_.has_value();  // the engine goes first
  std::vector<TransferId> queue = std::exchange(uncredited_, {});
  for (TransferId id : queue) {
    auto it = transfers_.find(id);
    if (it == transfers_.end() || it->second->released()) continue;
    // First come, first served among those that have met: a large request is
    // not overtaken for ever by small ones.
    if ((blocked && it->second->met()) || !it->second->TryCredit()) {
      blocked |= it->second->met();
      uncredited_.push_back(id);
    } else {
      progress = true;
    }
  }
  return progress;
}

bool DecodeRole::RelieveEngine() {
  const std::optional<RequestId> starved = context_->engine->starved();
  if (!starved.has_value()) {
    starved_since_.reset();
    context_->timers->Cancel(std::exchange(starved_timer_, 0));
    return false;
  }
  const Instant now = context_->clock->Now();
  if (!starved_since_.has_value()) starved_since_ = now;
  const Instant due = *starved_since_ + context_->options.starvation_timeout;
  if (now < due) {
    // Only so that Poll is called then.
    if (starved_timer_ == 0) {
      starved_timer_ =
          context_->timers->Schedule(due, [this] { starved_timer_ = 0; });
    }
    return false;
  }
  DecodeTransfer* latest = nullptr;
  for (auto& [id, transfer] : transfers_) {
    if (transfer->fencing()) return false;  // its blocks may be enough
    if (transfer->holds_credit() && *starved < id.request) {
      latest = transfer.get();
    }
  }
  if (latest == nullptr) return false;
  Sometimes<"a credit was taken back for an earlier request">();
  latest->TakeCreditBack();
  return true;
}

bool DecodeRole::Reap() {
  bool progress = std::erase_if(local_, [](const auto& entry) {
                    return entry.second->released();
                  }) > 0;
  std::erase_if(unsettled_, [&](TransferId id) {
    auto it = transfers_.find(id);
    if (it->second->unsettled()) return false;
    if (it->second->released()) {
      transfers_.erase(it);
      progress = true;
    }
    return true;
  });
  return progress;
}

bool DecodeRole::Poll() {
  bool progress = false;
  for (TransferId id : std::vector(unsettled_.begin(), unsettled_.end())) {
    progress |= transfers_.at(id)->Poll();
  }
  progress |= RelieveEngine();
  progress |= GrantCredits();
  progress |= Reap();
  return progress;
}

void DecodeRole::BeginDrain() {
  draining_ = true;
  // Not what comes back later, because nobody else can take it.
  for (auto& [id, transfer] : transfers_) {
    gave_up_.insert(id.request);
    transfer->YieldWhenActive();
  }
  for (auto& [id, local] : local_) {
    gave_up_.insert(id.request);
    local->YieldAtNextToken();
  }
}

bool DecodeRole::keeps(RequestId request) const {
  return context_->kept->Has(request) || gave_up_.contains(request) ||
         std::any_of(
             transfers_.begin(), transfers_.end(), [&](const auto& entry) {
               return entry.first.request == request && entry.second->keeps();
             });
}

void DecodeRole::CountBlocks(BlockCensus& census) const {
  for (const auto& [id, transfer] : transfers_) transfer->CountBlocks(census);
  for (const auto& [id, local] : local_) local->CountBlocks(census);
}

std::vector<TransferId> DecodeRole::Generating() const {
  std::vector<TransferId> ids;
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->state() == DecodeState::kActive) ids.push_back(id);
  }
  for (const auto& [id, local] : local_) {
    if (!local->released()) ids.push_back(id);
  }
  return ids;
}

int DecodeRole::waiting() const { return static_cast<int>(uncredited_.size()); }

}  // namespace penstock
