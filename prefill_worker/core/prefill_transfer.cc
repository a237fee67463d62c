#include "prefill_worker/core/prefill_transfer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/base/status_macros.h"
#include "common/engine/resume.h"
#include "common/peer/error_reason.h"

namespace penstock {

PrefillTransfer::PrefillTransfer(const WorkerContext* context, LegRequest leg,
                                 LegSink* sink)
    : context_(context),
      leg_(std::move(leg)),
      history_(leg_.history()),
      output_(leg_, LegKind::kPrefill, sink, context->clock, context->probe),
      id_(leg_.transfer()),
      root_(context->hasher->Root({context->content, "", leg_.request.tenant,
                                   leg_.request.cache_salt})),
      chunks_(context, id_),
      lease_(
          context,
          [this] {
            if (state_ == PrefillState::kQueued) {
              context_->kept->Renew(id_.request);
            }
            Send(Renew{id_, context_->options.lease});
          },
          [this] {
            Sometimes<"a decode worker let its lease expire">();
            FailKeeping(
                MakeError(ErrorReason::kTransferFailed,
                          absl::StrCat("decode worker ", leg_.partner.worker,
                                       " let its lease expire")));
          }) {
  if (leg_.request.timeout != absl::InfiniteDuration()) {
    deadline_timer_ = context_->timers->Schedule(
        context_->clock->Now() + leg_.request.timeout, [this] {
          Fail(MakeError(ErrorReason::kDeadline,
                         "the request's deadline passed"));
        });
  }
  lease_.Refresh();
  context_->kept->Renew(id_.request);
}

PrefillTransfer::~PrefillTransfer() { CancelTimers(); }

absl::Status PrefillTransfer::Prepare() {
  RETURN_IF_ERROR(
      context_->engine->CheckFits(static_cast<int>(history_.size())));
  queued_ = std::make_unique<Sequence>(leg_.request, root_, context_->tokenizer,
                                       context_->context_length);
  ASSIGN_OR_RETURN(std::vector<TokenDelivery> made,
                   Replay(DeliveredOf(leg_, 0), *queued_));
  if (!made.empty() && made.back().finish != FinishReason::kNone) {
    return absl::InvalidArgumentError(
        "delivered: the answer has ended, a prefill leg has nothing to make");
  }
  return absl::OkStatus();
}

int PrefillTransfer::prompt_blocks() const {
  return BlocksFor(static_cast<int>(history_.size()));
}

void PrefillTransfer::Send(HandoffMessage message) {
  if (!peer_gone_) context_->peers->Send(peer_, std::move(message));
}

void PrefillTransfer::CancelTimers() {
  lease_.End();
  context_->timers->Cancel(std::exchange(deadline_timer_, 0));
}

// --- agreeing -------------------------------------------------------------

void PrefillTransfer::OnPeerReady(const WorkerKey& peer) {
  if (offered_ || state_ != PrefillState::kQueued) return;
  offered_ = true;
  peer_ = peer;
  lease_.Refresh();
  lease_.StartRenewing();
  Offer offer;
  offer.transfer = id_;
  offer.layout = context_->layout.id();
  offer.content = context_->content;
  offer.numerics = context_->numerics;
  offer.prompt_tokens = static_cast<int>(history_.size());
  offer.block_hashes = context_->hasher->Chain(root_, history_);
  for (const KvTransport* transport : context_->transports) {
    offer.transports.push_back(transport->caps().kind);
  }
  Send(std::move(offer));
}

void PrefillTransfer::OnCredit(const Credit& message) {
  if (state_ != PrefillState::kQueued) return;
  lease_.Refresh();
  if (message.have_blocks < 0 || message.have_blocks > prompt_blocks()) {
    Fail(MakeError(ErrorReason::kTransferFailed,
                   "the credit names more blocks than the prompt has"));
    return;
  }
  chunks_.SkipTo(message.have_blocks);
  shared_ = peer_ == context_->self;
  if (!shared_) {
    absl::Status connected = chunks_.Connect(peer_, message.addresses);
    if (!connected.ok()) {
      FailKeeping(MakeError(ErrorReason::kTransferFailed, connected.message()));
      return;
    }
  }
  AdoptKept(*context_, *queued_);
  if (!queued_->blocks.empty()) {
    Sometimes<"prefill offered kept KV to another decode worker">();
    output_.MarkScheduled();
  }
  auto added = context_->engine->Add(std::move(queued_), this,
                                     {AfterDraw::kHold, SequenceId()});
  if (!added.ok()) {
    Fail(added.status());
    return;
  }
  sequence_ = *added;
  Move(state_, PrefillState::kComputing);
  output_.Accept();
  SendReadyBlocks();
}

void PrefillTransfer::OnReject(const Reject& message) {
  if (state_ != PrefillState::kQueued) return;
  peer_gone_ = true;  // it keeps nothing of this transfer
  ErrorReason reason = message.code == absl::StatusCode::kResourceExhausted
                           ? ErrorReason::kQueueFull
                           : ErrorReason::kTransferFailed;
  FailKeeping(
      MakeError(reason,
                absl::StrCat("decode worker ", peer_.name,
                             " rejected the request: ", message.message),
                "", message.retry_after));
}

void PrefillTransfer::OnGrant(const Grant& message) {
  lease_.Refresh();
  for (size_t i = 0; i < message.blocks.size(); ++i) {
    int64_t block =
        int64_t{message.first_prompt_block} + static_cast<int64_t>(i);
    if (block < 0 || block >= prompt_blocks()) continue;
    chunks_.Grant(static_cast<int>(block), message.blocks[i]);
  }
  SendReadyBlocks();
}

void PrefillTransfer::OnRenew() { lease_.Refresh(); }

// --- computing and sending ------------------------------------------------

void PrefillTransfer::OnScheduled() { output_.MarkScheduled(); }

void PrefillTransfer::OnComputed(int computed) { SendReadyBlocks(); }

void PrefillTransfer::SendReadyBlocks() {
  if (state_ != PrefillState::kComputing && state_ != PrefillState::kSending) {
    return;
  }
  const Sequence* sequence = context_->engine->Find(sequence_);
  if (sequence == nullptr) return;
  // After a preemption fewer blocks are complete than were before; what is
  // computed again has the same bytes.
  const int ready = sequence->computed >= static_cast<int>(history_.size())
                        ? prompt_blocks()
                        : sequence->computed / kBlockTokens;
  if (shared_) {
    std::optional<ChunkDone> done = chunks_.Share(ready, sequence->blocks);
    if (done.has_value()) Send(*std::move(done));
    return;
  }
  chunks_.Post(ready, sequence->blocks);
  if (chunks_.posting() && state_ == PrefillState::kComputing) {
    Move(state_, PrefillState::kSending);
  }
}

void PrefillTransfer::OnCompletion(TransportKind via,
                                   const PostCompletion& completion) {
  std::optional<OutgoingChunk> chunk = chunks_.TakePosted(via, completion);
  if (!chunk.has_value()) return;
  if (state_ == PrefillState::kAborting) {
    MaybeQuiesce();
    return;
  }
  if (!completion.status.ok()) {
    context_->probe->ChunkNacked(completion.status.message());
    Retry(*std::move(chunk), absl::StrCat("pages did not reach ", peer_.name,
                                          ": ", completion.status.message()));
    return;
  }
  Send(chunks_.Arrived(*std::move(chunk), completion));
  if (!chunks_.posting() && state_ == PrefillState::kSending) {
    Move(state_, PrefillState::kComputing);
  }
  MaybeCommit();
}

void PrefillTransfer::OnNack(const ChunkNack& message) {
  if (state_ >= PrefillState::kAcked) return;
  std::optional<OutgoingChunk> chunk = chunks_.TakeArrived(message.chunk);
  if (!chunk.has_value()) return;
  if (state_ == PrefillState::kSent) {
    FailKeeping(MakeError(
        ErrorReason::kTransferFailed,
        absl::StrCat("decode worker ", peer_.name,
                     " refused a chunk after the commit: ", message.reason)));
    return;
  }
  Retry(*std::move(chunk),
        absl::StrCat("decode worker ", peer_.name,
                     " refused a chunk too often: ", message.reason));
}

void PrefillTransfer::Retry(OutgoingChunk chunk, const std::string& why) {
  if (!chunks_.SendAgain(std::move(chunk))) {
    FailKeeping(MakeError(ErrorReason::kTransferFailed, why));
    return;
  }
  SendReadyBlocks();
  if (!chunks_.posting() && state_ == PrefillState::kSending) {
    Move(state_, PrefillState::kComputing);
  }
}

void PrefillTransfer::OnScored(PromptLogprobs part) {
  output_.DeliverPrompt(std::move(part));
}

void PrefillTransfer::OnDrawn(SequenceId id,
                              absl::Span<const SampledToken> drawn) {
  first_token_at_ = context_->clock->Now();
  output_.MarkToken(context_->engine->Find(id)->generated());
  for (const SampledToken& token : drawn) {
    drawn_.push_back(DrawsOf(DeliveredOf(leg_, 0)));
    drawn_.back().push_back(token);
  }
  if (!leg_.request.deferred() &&
      !DeliverTokens(*context_->engine->Find(id), drawn)) {
    // Nothing is left to decode: OK tells the peer so.
    Fail(absl::OkStatus());
    return;
  }
  MaybeCommit();
}

bool PrefillTransfer::DeliverTokens(const Sequence& sequence,
                                    absl::Span<const SampledToken> drawn) {
  LegFacts facts;
  facts.usage.prompt_tokens = sequence.prompt_tokens();
  facts.usage.cached_tokens = sequence.cached_tokens;
  facts.usage.completion_tokens =
      sequence.generated() + static_cast<int>(drawn.size());
  facts.transfer.transport = "none";
  std::vector<TokenDelivery> made;
  bool open = false;
  for (size_t i = 0; i < drawn.size(); ++i) {
    made.push_back(sequence.Fork(sequence.sample() + static_cast<int>(i))
                       ->Append(drawn[i]));
    open |= made.back().finish == FinishReason::kNone;
    drawn_[i].back().logprobs = {};  // delivered
  }
  for (const TokenDelivery& delivery : made) {
    const bool last = !open && &delivery == &made.back();
    output_.Deliver(delivery, last ? &facts : nullptr);
  }
  return open;
}

void PrefillTransfer::OnFailed(const absl::Status& status) { Fail(status); }

// --- committing -----------------------------------------------------------

KvManifest PrefillTransfer::MakeManifest() {
  const Sequence& sequence = *context_->engine->Find(sequence_);
  KvManifest manifest;
  manifest.layout = context_->layout.id();
  manifest.content = context_->content;
  manifest.numerics = context_->numerics;
  manifest.prompt_tokens = sequence.length();
  manifest.block_hashes = context_->hasher->Chain(root_, history_);
  manifest.moved = chunks_.Moved();
  manifest.bytes_moved = chunks_.bytes();
  manifest.chunks = chunks_.chunks();
  manifest.state = SerializeState(leg_.request, drawn_);
  manifest.timings = output_.timings();
  manifest.timings.transfer = context_->clock->Now() - first_token_at_;
  manifest.cached_tokens = sequence.cached_tokens;
  return manifest;
}

void PrefillTransfer::MaybeCommit() {
  if (drawn_.empty() || state_ != PrefillState::kComputing ||
      !chunks_.SentAll(prompt_blocks())) {
    return;
  }
  Send(Commit{id_, MakeManifest()});
  Move(state_, PrefillState::kSent);
}

void PrefillTransfer::OnCommitAck() {
  if (state_ != PrefillState::kSent) return;
  Move(state_, PrefillState::kAcked);
  context_->probe->TransferEnded(
      HandoffProbe::Direction::kOut,
      TransportName(shared_ ? TransportKind::kInproc : chunks_.busiest()), "ok",
      chunks_.bytes(), context_->clock->Now() - first_token_at_);
  output_.Finish(absl::OkStatus());
  Release();
}

// --- ending ---------------------------------------------------------------

void PrefillTransfer::OnAbort(const Abort& message) {
  absl::Status status = MakeError(
      ErrorReason::kTransferFailed,
      absl::StrCat("decode worker ", peer_.name, " gave up: ", message.reason));
  if (WorthKeeping(message.code)) {
    FailKeeping(status);
  } else {
    Fail(status);
  }
}

void PrefillTransfer::OnPeerLost(const absl::Status& why) {
  peer_gone_ = true;
  FailKeeping(MakeError(ErrorReason::kWorkerLost,
                        absl::StrCat("decode worker ", leg_.partner.worker,
                                     " was lost: ", why.message())));
}

void PrefillTransfer::FailKeeping(const absl::Status& status) {
  if (state_ >= PrefillState::kAcked) return;
  // What an earlier leg left and this one did not take is there still.
  context_->kept->Renew(id_.request);
  int kept = context_->kept->Look(id_.request, history_);
  if (sequence_) {
    keep_ = KeepableOf(context_->engine->Remove(std::exchange(sequence_, {})));
  }
  if (keep_.has_value()) {
    Sometimes<"prefill kept the KV of a request that lost its decode worker">();
    kept = std::max(kept, keep_->computed);
  }
  Fail(WithKeptTokens(status, kept));
}

void PrefillTransfer::Fail(const absl::Status& status) {
  output_.Finish(status);
  if (state_ >= PrefillState::kAcked) return;
  Move(state_, PrefillState::kAborting);
  CancelTimers();
  if (offered_) {
    Send(Abort{id_, status.code(), std::string(status.message())});
  }
  if (sequence_) context_->engine->Remove(std::exchange(sequence_, {}));
  chunks_.CancelPosts();
  MaybeQuiesce();
}

void PrefillTransfer::MaybeQuiesce() {
  if (chunks_.posting()) return;
  if (keep_.has_value()) {
    KeepForNextLeg(*context_, id_.request, *std::exchange(keep_, {}));
  }
  Move(state_, PrefillState::kLocallyQuiesced);
  if (offered_) Send(FenceAck{id_});
  Release();
}

void PrefillTransfer::CountBlocks(BlockCensus& census) const {
  if (queued_ != nullptr) census.Add(queued_->blocks);
  if (keep_.has_value()) census.Add(keep_->blocks);
  chunks_.CountBlocks(census);
}

void PrefillTransfer::Release() {
  CancelTimers();
  if (sequence_) context_->engine->Remove(std::exchange(sequence_, {}));
  Move(state_, PrefillState::kReleased);
}

}  // namespace penstock
