#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/engine/handoff_state.h"
#include "common/engine/leg_output.h"
#include "common/engine/peer_lease.h"
#include "common/engine/sequence_state.h"
#include "common/engine/worker_context.h"
#include "common/peer/handoff_message.h"
#include "prefill_worker/core/outgoing_chunks.h"

namespace penstock {

// One request at its prefill worker, from the leg to CommitAck: offers, waits
// for credit, computes the history (LegRequest::history) once, pushes pages as
// they are complete, emits the next token of every answer and commits. Answers
// that are compared at the end (best_of, beam search) are not emitted here and
// never end here. Source pages stay pinned until their posts have completed.
// Owned by PrefillRole, which removes it when released(). Single-threaded.
class PrefillTransfer : public SequenceListener {
 public:
  PrefillTransfer(const WorkerContext* context, LegRequest leg, LegSink* sink);
  ~PrefillTransfer() override;

  // Refuses what can never fit, or has ended already.
  absl::Status Prepare();

  void OnPeerReady(const WorkerKey& peer);
  void OnCredit(const Credit& message);
  void OnReject(const Reject& message);
  void OnGrant(const Grant& message);
  void OnNack(const ChunkNack& message);
  void OnCommitAck();
  void OnRenew();
  void OnAbort(const Abort& message);
  void OnCompletion(TransportKind via, const PostCompletion& completion);
  void OnPeerLost(const absl::Status& why);

  // Ends the leg with `status`, tells the peer, and releases once every post
  // has completed.
  void Fail(const absl::Status& status);

  void CountBlocks(BlockCensus& census) const;
  // Its KV is about to be kept for the request's next leg.
  bool keeps() const { return keep_.has_value(); }
  bool released() const { return state_ == PrefillState::kReleased; }
  PrefillState state() const { return state_; }
  const PeerAddress& partner() const { return leg_.partner; }
  const WorkerKey& peer() const { return peer_; }
  bool offered() const { return offered_; }

 private:
  void OnScheduled() override;
  void OnComputed(int computed) override;
  void OnScored(PromptLogprobs part) override;
  void OnDrawn(SequenceId id, absl::Span<const SampledToken> drawn) override;
  void OnFailed(const absl::Status& status) override;

  // Blocks of the history.
  int prompt_blocks() const;
  // False: every answer ended with its token.
  bool DeliverTokens(const Sequence& sequence,
                     absl::Span<const SampledToken> drawn);
  void SendReadyBlocks();
  // Sends a chunk that did not arrive once more; fails with `why` after too
  // many attempts.
  void Retry(OutgoingChunk chunk, const std::string& why);
  void MaybeCommit();
  KvManifest MakeManifest();
  // Fail through no fault of this worker: keeps what is computed, once no post
  // reads it any more, and says how much that is.
  void FailKeeping(const absl::Status& status);
  void MaybeQuiesce();
  void Release();
  void CancelTimers();
  void Send(HandoffMessage message);

  const WorkerContext* context_;
  LegRequest leg_;
  std::vector<TokenId> history_;  // the leg's
  LegOutput output_;
  TransferId id_;
  BlockHash root_;
  PrefillState state_ = PrefillState::kQueued;
  WorkerKey peer_;
  bool offered_ = false;
  bool peer_gone_ = false;  // nothing is to be sent to it

  bool shared_ = false;
  OutgoingChunks chunks_;
  std::vector<AnswerDraws> drawn_;  // of each answer; empty until then
  Instant first_token_at_;
  std::optional<KeptKv::Prefix> keep_;  // while aborting
  std::unique_ptr<Sequence> queued_;    // until credit comes
  SequenceId sequence_;                 // from then on
  TimerId deadline_timer_ = 0;
  PeerLease lease_;
};

}  // namespace penstock
