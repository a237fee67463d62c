#pragma once

#include <map>
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
#include "prefill_worker/core/push_routes.h"

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
  // Pages of consecutive blocks of the history under way in one post.
  struct Chunk {
    int number = 0;
    int first_block = 0;
    int blocks = 0;
    int attempts = 0;
    KvTransport* via = nullptr;       // of the last attempt
    std::vector<TransferPin> pins;    // while it is posted
    std::vector<uint64_t> checksums;  // once complete
  };
  // Each transport numbers its own posts.
  using PostKey = std::pair<TransportKind, PostId>;

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
  void ShareBlocks(int last);
  void PostBlocks(int last);
  void Post(Chunk chunk);
  // When a post that brings this chunk counts as failed.
  Instant PostDeadline(const Chunk& chunk) const;
  // Sends a chunk that did not arrive once more, over another transport if
  // there is one; fails with `why` after too many attempts.
  void Retry(Chunk chunk, const std::string& why);
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
  PushRoutes routes_;
  int have_blocks_ = 0;              // leading blocks that decode has already
  std::map<int, BlockRef> granted_;  // by prompt block
  int next_block_ = 0;               // first block not posted yet
  int next_chunk_ = 0;
  std::map<PostKey, Chunk> posts_;  // in flight
  std::map<int, Chunk> done_;       // by number, for a Nack
  std::vector<Chunk> again_;        // wait to be sent once more
  uint64_t bytes_ = 0;
  std::vector<AnswerDraws> drawn_;  // of each answer; empty until then
  Instant first_token_at_;
  std::optional<KeptKv::Prefix> keep_;  // while aborting
  std::unique_ptr<Sequence> queued_;    // until credit comes
  SequenceId sequence_;                 // from then on
  TimerId deadline_timer_ = 0;
  PeerLease lease_;
};

}  // namespace penstock
