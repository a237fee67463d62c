#include "prefill_worker/core/prefill_role.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {

PrefillRole::PrefillRole(const WorkerContext* context) : context_(context) {}

PrefillRole::~PrefillRole() = default;

void PrefillRole::StartLeg(LegRequest leg, LegSink* sink) {
  TransferId id = leg.transfer();
  if (transfers_.contains(id)) {
    sink->OnFinished(MakeError(ErrorReason::kInternal, "leg runs already"));
    return;
  }
  PeerAddress partner = leg.partner;
  auto [it, added] = transfers_.emplace(
      id, std::make_unique<PrefillTransfer>(context_, std::move(leg), sink));
  absl::Status status = it->second->Prepare();
  if (partner.worker.empty()) {
    status = MakeError(ErrorReason::kInternal,
                       "a prefill leg needs a decode worker to hand off to");
  }
  if (!status.ok()) {
    it->second->Fail(status);
    return;
  }
  context_->peers->Dial(partner);
}

void PrefillRole::CancelLeg(TransferId id) {
  auto it = transfers_.find(id);
  if (it == transfers_.end()) return;
  it->second->Fail(MakeError(ErrorReason::kCancelled, "the leg was cancelled"));
}

void PrefillRole::OnPeerReady(const WorkerKey& peer) {
  WorkerKey& known = peers_[peer.name];
  if (known.incarnation && known != peer) {
    // A new life at the same name: nothing of the old one counts any more.
    for (KvTransport* transport : context_->transports) {
      transport->DropPeer(known);
    }
  }
  known = peer;
  for (auto& [id, transfer] : transfers_) {
    if (transfer->partner().worker == peer.name) transfer->OnPeerReady(peer);
  }
}

void PrefillRole::OnDialFailed(const PeerAddress& address,
                               const absl::Status& why) {
  for (auto& [id, transfer] : transfers_) {
    if (transfer->partner().worker == address.worker && !transfer->offered()) {
      transfer->OnPeerLost(why);
    }
  }
}

void PrefillRole::OnPeerMessage(const WorkerKey& peer,
                                const HandoffMessage& message) {
  auto it = transfers_.find(TransferOf(message));
  if (it == transfers_.end() || it->second->peer() != peer) return;
  PrefillTransfer& transfer = *it->second;
  if (auto* credit = std::get_if<Credit>(&message)) {
    transfer.OnCredit(*credit);
  } else if (auto* reject = std::get_if<Reject>(&message)) {
    transfer.OnReject(*reject);
  } else if (auto* grant = std::get_if<Grant>(&message)) {
    transfer.OnGrant(*grant);
  } else if (auto* nack = std::get_if<ChunkNack>(&message)) {
    transfer.OnNack(*nack);
  } else if (std::holds_alternative<CommitAck>(message)) {
    transfer.OnCommitAck();
  } else if (std::holds_alternative<Renew>(message)) {
    transfer.OnRenew();
  } else if (auto* abort = std::get_if<Abort>(&message)) {
    transfer.OnAbort(*abort);
  }
}

void PrefillRole::OnPeerLost(const WorkerKey& peer, const absl::Status& why) {
  for (auto& [id, transfer] : transfers_) {
    if (transfer->offered() && transfer->peer() == peer) {
      transfer->OnPeerLost(why);
    }
  }
}

void PrefillRole::OnCompletion(TransportKind transport,
                               const PostCompletion& completion) {
  if (auto it = transfers_.find(completion.transfer); it != transfers_.end()) {
    it->second->OnCompletion(transport, completion);
  }
}

bool PrefillRole::Poll() {
  return std::erase_if(transfers_,
                       [](const auto& t) { return t.second->released(); }) > 0;
}

bool PrefillRole::keeps(RequestId request) const {
  return std::any_of(
      transfers_.begin(), transfers_.end(), [&](const auto& entry) {
        return entry.first.request == request && entry.second->keeps();
      });
}

void PrefillRole::CountBlocks(BlockCensus& census) const {
  for (const auto& [id, transfer] : transfers_) transfer->CountBlocks(census);
}

int PrefillRole::waiting() const {
  int waiting = 0;
  for (const auto& [id, transfer] : transfers_) {
    waiting += transfer->state() == PrefillState::kQueued;
  }
  return waiting;
}

}  // namespace penstock
