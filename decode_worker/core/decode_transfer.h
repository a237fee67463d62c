#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/engine/handoff_state.h"
#include "common/engine/leg_output.h"
#include "common/engine/peer_lease.h"
#include "common/engine/sequence_state.h"
#include "common/engine/worker_context.h"
#include "common/peer/handoff_message.h"
#include "decode_worker/core/answer_group.h"
#include "decode_worker/core/arrived_pages.h"

namespace penstock {

// One handed-off request at its decode worker, from Offer or leg (whichever
// comes first) to the last token. Holds the request's blocks, cached and
// arriving, and lets none go before the transport's fence. Owned by DecodeRole,
// which removes it when released(). Single-threaded.
class DecodeTransfer {
 public:
  // Puts its id into `unsettled` whenever it has something for Poll to do, or
  // is released.
  DecodeTransfer(const WorkerContext* context, TransferId id,
                 std::set<TransferId>* unsettled);
  ~DecodeTransfer();

  // The two halves that have to meet.
  void OnLeg(LegRequest leg, LegSink* sink);
  void OnOffer(const WorkerKey& peer, Offer offer);

  // Waits for blocks: to be called in order of arrival whenever some may have
  // become free. True when it needs no further call.
  bool TryCredit();

  void OnChunkDone(ChunkDone message);
  void OnCommit(Commit message);
  void OnRenew();
  void OnAbort(const Abort& message);
  void OnFenceAck();
  void OnArrival(TransportKind via, const PageArrival& arrival);
  void OnPeerLost(const absl::Status& why);

  // Ends the leg with `status`, tells the peer, and lets go of everything that
  // a fence allows; the rest follows in Poll.
  void Fail(const absl::Status& status);

  // Its credit is worth taking back: pages still come into blocks that only it
  // holds.
  bool holds_credit() const {
    return !blocks_.empty() && !shared_ &&
           (state_ == DecodeState::kMapped ||
            state_ == DecodeState::kReceiving);
  }
  // Gives the credit's blocks to those who cannot go on without. The attempt
  // fails with kQueueFull; what has come is kept as long as nobody needs it.
  // Precondition: holds_credit().
  void TakeCreditBack();

  // What the leg makes ends with its next token, if it can go on elsewhere
  // (AnswerGroup::YieldAtNextToken).
  void YieldWhenActive();

  // Moves an outstanding fence on; to be called after arrivals were drained.
  // True when it changed something.
  bool Poll();

  void CountBlocks(BlockCensus& census) const;

  // Its verified pages are about to be kept for the request's next leg.
  bool keeps() const { return keep_; }
  bool released() const { return state_ == DecodeState::kReleased; }
  // On the way from a revocation to the release.
  bool fencing() const {
    return state_ == DecodeState::kRevoking ||
           state_ == DecodeState::kQuarantined ||
           state_ == DecodeState::kFenced;
  }
  // Poll has something to do.
  bool unsettled() const {
    return state_ == DecodeState::kCommitted || fencing();
  }
  DecodeState state() const { return state_; }
  bool has_offer() const { return offer_.has_value(); }
  bool has_leg() const { return output_ != nullptr; }
  bool met() const { return has_leg() && has_offer(); }
  const WorkerKey& peer() const { return peer_; }

 private:
  // Blocks of the history: of all that the handoff brings.
  int prompt_blocks() const;
  void Meet();
  absl::Status CheckOffer() const;
  void RejectOffer(const absl::Status& status);
  int GrowthBlocks() const;
  bool Map();
  bool ReserveBlocks();
  // Those of this worker and of the offer, best first.
  std::vector<KvTransport*> CommonTransports() const;
  // Closes all of them to the transfer; true when no write can land any more.
  bool Revoke();
  void TakeShared(const ChunkDone& message);
  // A page that was there has other bytes now.
  void OnPageChanged(BlockRef block);
  // Asks for a chunk again.
  void Nack(const ChunkDone& chunk, const std::string& why);
  void NackSpoiled(const ChunkDone& chunk);
  void ArmArrivalTimer();
  void NackMissing();
  // False: a page has not arrived yet.
  bool CheckChunk(const ChunkDone& message);
  void MaybeCommit();
  absl::Status Verify(const KvManifest& manifest);
  bool GoesOnAfterDelivered(absl::Span<const ResumedAnswer> answers) const;
  void Activate();
  // Fail through no fault of this worker: keeps the leading verified pages,
  // once the fence is through, and says how many tokens' they are.
  void FailKeeping(const absl::Status& status);
  int VerifiedTokens() const;
  void KeepVerified();
  void BeginRevoke();
  void TryFence();
  void Release();
  void ArmMeetTimer();
  void ArmDeadline();
  void CancelTimers();
  void Send(HandoffMessage message);

  const WorkerContext* context_;
  TransferId id_;
  std::set<TransferId>* unsettled_;
  DecodeState state_ = DecodeState::kOffered;
  LegRequest leg_;
  std::vector<TokenId> history_;  // the leg's
  std::unique_ptr<LegOutput> output_;
  WorkerKey peer_;
  std::optional<Offer> offer_;
  BlockHash root_;

  bool shared_ = false;  // both roles in one worker: by reference
  // Open to the transfer's writes; empty until mapped, or when shared.
  std::vector<KvTransport*> transports_;
  std::map<TransportKind, uint64_t> bytes_by_kind_;
  std::vector<BlockHold> blocks_;  // by prompt block; cached ones first
  std::vector<BlockHold> growth_;  // for the first position after them
  int have_blocks_ = 0;            // leading ones that were cached here
  int short_of_ = 0;               // blocks that must be there to try again
  std::vector<TransferPin> pins_;  // of the granted ones
  ArrivedPages pages_;
  std::vector<ChunkDone> waiting_chunks_;    // announced, a page is missing
  std::map<int, ChunkDone> checked_chunks_;  // by number
  std::vector<bool> verified_;               // by prompt block
  std::set<int> chunks_;                     // numbers announced and not nacked
  std::optional<Commit> commit_;
  std::vector<ResumedAnswer> resumed_;  // from Verify until Activate
  TransferSummary summary_;
  Instant credited_at_;

  std::unique_ptr<AnswerGroup> answers_;  // once active
  bool fence_acked_ = false;
  bool fenced_ = false;  // no write can land any more
  bool keep_ = false;    // what is verified, after the fence
  bool yields_ = false;
  TimerId meet_timer_ = 0;
  TimerId deadline_timer_ = 0;
  TimerId arrival_timer_ = 0;
  PeerLease lease_;
};

}  // namespace penstock
