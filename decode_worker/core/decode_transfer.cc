#include "decode_worker/core/decode_transfer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/peer/error_reason.h"

namespace penstock {

DecodeTransfer::DecodeTransfer(const WorkerContext* context, TransferId id)
    : context_(context),
      id_(id),
      lease_(
          context,
          [this] {
            Send(Renew{id_, context_->options.lease});
          },
          [this] {
            Fail(MakeError(ErrorReason::kTransferFailed,
                           absl::StrCat("prefill worker ", peer_.name,
                                        " let its lease expire")));
          }) {
  ArmMeetTimer();
}

DecodeTransfer::~DecodeTransfer() { CancelTimers(); }

int DecodeTransfer::prompt_blocks() const {
  return BlocksFor(static_cast<int>(history_.size()));
}

void DecodeTransfer::Send(HandoffMessage message) {
  context_->peers->Send(peer_, std::move(message));
}

// --- timers ---------------------------------------------------------------

void DecodeTransfer::ArmMeetTimer() {
  meet_timer_ = context_->timers->Schedule(
      context_->clock->Now() + context_->options.meet_timeout, [this] {
        Fail(MakeError(ErrorReason::kTransferFailed,
                       output_ == nullptr
                           ? "no decode leg came for this offer"
                           : "the prefill worker made no offer in time"));
      });
}

void DecodeTransfer::ArmDeadline() {
  if (leg_.request.timeout == absl::InfiniteDuration()) return;
  deadline_timer_ = context_->timers->Schedule(
      context_->clock->Now() + leg_.request.timeout, [this] {
        Fail(
            MakeError(ErrorReason::kDeadline, "the request's deadline passed"));
      });
}

void DecodeTransfer::CancelTimers() {
  lease_.End();
  for (TimerId* timer : {&meet_timer_, &deadline_timer_, &arrival_timer_}) {
    context_->timers->Cancel(*timer);
    *timer = 0;
  }
}

// --- meeting --------------------------------------------------------------

void DecodeTransfer::OnLeg(LegRequest leg, LegSink* sink) {
  CHECK(output_ == nullptr);
  leg_ = std::move(leg);
  history_ = leg_.history();
  output_ = std::make_unique<LegOutput>(leg_, LegKind::kDecode, sink,
                                        context_->clock, context_->probe);
  root_ = context_->hasher->Root(
      {context_->content, "", leg_.request.tenant, leg_.request.cache_salt});
  ArmDeadline();
  Meet();
}

void DecodeTransfer::OnOffer(const WorkerKey& peer, Offer offer) {
  if (offer_.has_value()) return;  // a repeated offer changes nothing
  peer_ = peer;
  offer_ = std::move(offer);
  lease_.Refresh();
  lease_.StartRenewing();
  Meet();
}

// However long blocks are waited for from now on, nobody is missing.
void DecodeTransfer::Meet() {
  if (!met() || state_ != DecodeState::kOffered) return;
  context_->timers->Cancel(std::exchange(meet_timer_, 0));
  if (absl::Status status = CheckOffer(); !status.ok()) Fail(status);
}

absl::Status DecodeTransfer::CheckOffer() const {
  if (peer_.name != leg_.partner.worker) {
    return MakeError(ErrorReason::kIncompatibleWorker,
                     absl::StrCat("offer from ", peer_.name, ", but ",
                                  leg_.partner.worker, " was announced"));
  }
  if (offer_->layout != context_->layout.id() ||
      offer_->content != context_->content) {
    return MakeError(ErrorReason::kIncompatibleWorker,
                     absl::StrCat("KV layout or model of ", peer_.name,
                                  " differs from this worker's"));
  }
  if (offer_->prompt_tokens != static_cast<int>(history_.size()) ||
      offer_->block_hashes != context_->hasher->Chain(root_, history_)) {
    return MakeError(ErrorReason::kInternal,
                     "the offer's prompt differs from the decode leg's");
  }
  if (peer_ != context_->self && CommonTransports().empty()) {
    return MakeError(ErrorReason::kIncompatibleWorker,
                     absl::StrCat("no transport in common with ", peer_.name));
  }
  return AnswerGroup::CheckFits(*context_, leg_.request);
}

std::vector<KvTransport*> DecodeTransfer::CommonTransports() const {
  const std::vector<TransportKind>& theirs = offer_->transports;
  std::vector<KvTransport*> common;
  std::copy_if(context_->transports.begin(), context_->transports.end(),
               std::back_inserter(common), [&](const KvTransport* transport) {
                 return std::find(theirs.begin(), theirs.end(),
                                  transport->caps().kind) != theirs.end();
               });
  return common;
}

bool DecodeTransfer::TryCredit() {
  if (state_ != DecodeState::kOffered) return true;
  if (!met()) return false;
  return Map();
}

// What its first own position needs beside what arrives: a credit without it
// would be taken back by the first step. Several answers share the prompt's
// last block and copy it as they go.
int DecodeTransfer::GrowthBlocks() const {
  const GenerateRequest& request = leg_.request;
  const size_t most = request.prompt.size() + request.stop.max_tokens;
  if (request.answers() > 1 || history_.size() + 1 >= most) return 0;
  return BlocksFor(static_cast<int>(history_.size()) + 1) - prompt_blocks();
}

bool DecodeTransfer::Map() {
  Credit credit{id_, 0, {}, context_->options.lease};
  shared_ = peer_ == context_->self;
  if (shared_) {
    summary_.transport = TransportName(TransportKind::kInproc);
  } else {
    int full = static_cast<int>(history_.size()) / kBlockTokens;
    std::vector<BlockHold> cached =
        context_->cache->Match(root_, history_, full);
    const int growth = GrowthBlocks();
    auto fresh = context_->engine->TryReserve(prompt_blocks() + growth -
                                              static_cast<int>(cached.size()));
    if (!fresh.has_value()) return false;
    for (int i = 0; i < growth; ++i) {
      growth_.push_back(std::move(fresh->back()));
      fresh->pop_back();
    }
    have_blocks_ = static_cast<int>(cached.size());
    blocks_ = std::move(cached);
    for (BlockHold& hold : *fresh) blocks_.push_back(std::move(hold));
    transports_ = CommonTransports();
    summary_.transport = TransportName(transports_.front()->caps().kind);
    credit.have_blocks = have_blocks_;
    for (const KvTransport* transport : transports_) {
      credit.addresses.push_back(transport->Describe());
    }
  }
  verified_.assign(prompt_blocks(), false);
  std::fill_n(verified_.begin(), have_blocks_, true);
  credited_at_ = context_->clock->Now();
  Move(state_, DecodeState::kCredited);
  Send(std::move(credit));
  Grant grant{id_, 0, have_blocks_, {}};
  for (size_t i = have_blocks_; i < blocks_.size(); ++i) {
    pins_.push_back(context_->pool->Pin(blocks_[i].ref()));
    grant.blocks.push_back(blocks_[i].ref());
  }
  // A block is open on all of them at once: wherever its page comes from, it
  // has the same bytes.
  for (KvTransport* transport : transports_) {
    transport->PrepareReceive(id_, grant.blocks);
  }
  Move(state_, DecodeState::kMapped);
  if (!shared_) Send(std::move(grant));
  output_->Accept();
  return true;
}

// --- receiving ------------------------------------------------------------

void DecodeTransfer::OnRenew() {
  if (state_ < DecodeState::kCommitted) lease_.Refresh();
}

void DecodeTransfer::OnArrival(TransportKind via, const PageArrival& arrival) {
  // A page may be written more than once until the fence: sent again after its
  // post expired, or over another transport. That must not change it.
  auto page = arrived_.find(arrival.block);
  bool changed = arrival.landed && page != arrived_.end() &&
                 page->second != arrival.checksum;
  if (!arrival.status.ok()) {
    // The sender learns of it from its own completion and sends again.
    context_->probe->PageRefused(arrival.status.message());
    if (arrival.landed && page == arrived_.end()) {
      spoiled_[arrival.block] = via;
    } else if (changed) {
      spoiled_[arrival.block] = via;
      OnPageChanged(arrival.block);
    }
    return;
  }
  if (state_ == DecodeState::kCommitted) {
    if (changed) OnPageChanged(arrival.block);
    return;
  }
  if (state_ == DecodeState::kMapped) Move(state_, DecodeState::kReceiving);
  if (state_ != DecodeState::kReceiving) return;
  lease_.Refresh();
  if (changed) OnPageChanged(arrival.block);
  arrived_[arrival.block] = arrival.checksum;
  auto spoiled = spoiled_.find(arrival.block);
  if (spoiled != spoiled_.end() && spoiled->second == via) {
    spoiled_.erase(spoiled);
  }
  summary_.bytes_moved += arrival.bytes;
  uint64_t carried = bytes_by_kind_[via] += arrival.bytes;
  if (std::all_of(bytes_by_kind_.begin(), bytes_by_kind_.end(),
                  [&](const auto& kind) { return kind.second <= carried; })) {
    summary_.transport = TransportName(via);
  }
  MaybeCommit();
}

void DecodeTransfer::OnPageChanged(BlockRef block) {
  if (state_ == DecodeState::kCommitted) {
    Fail(MakeError(ErrorReason::kTransferFailed,
                   "a page changed after it was committed"));
    return;
  }
  if (state_ != DecodeState::kReceiving) return;
  arrived_.erase(block);
  for (auto at = checked_chunks_.begin(); at != checked_chunks_.end(); ++at) {
    const ChunkDone& chunk = at->second;
    for (size_t i = 0; i < chunk.checksums.size(); ++i) {
      if (blocks_[chunk.first_prompt_block + i].ref() != block) continue;
      for (size_t j = 0; j < chunk.checksums.size(); ++j) {
        verified_[chunk.first_prompt_block + j] = false;
      }
      Nack(chunk, "a page changed after it had arrived");
      checked_chunks_.erase(at);
      return;
    }
  }
}

bool DecodeTransfer::TakeSpoiled(const ChunkDone& chunk) {
  bool found = false;
  for (size_t i = 0; i < chunk.checksums.size(); ++i) {
    const BlockRef block = blocks_[chunk.first_prompt_block + i].ref();
    if (spoiled_.erase(block) == 0) continue;
    arrived_.erase(block);
    found = true;
  }
  return found;
}

void DecodeTransfer::Nack(const ChunkDone& chunk, const std::string& why) {
  context_->probe->ChunkNacked(why);
  chunks_.erase(chunk.chunk);
  Send(ChunkNack{id_, chunk.chunk, why});
}

void DecodeTransfer::ArmArrivalTimer() {
  if (arrival_timer_ != 0) return;
  arrival_timer_ = context_->timers->Schedule(
      context_->clock->Now() + context_->options.arrival_timeout,
      [this] { NackMissing(); });
}

void DecodeTransfer::NackMissing() {
  arrival_timer_ = 0;
  if (state_ != DecodeState::kReceiving) return;
  for (const ChunkDone& chunk : std::exchange(waiting_chunks_, {})) {
    Nack(chunk, "pages were announced and did not arrive");
  }
}

void DecodeTransfer::OnChunkDone(ChunkDone message) {
  if (state_ == DecodeState::kMapped) Move(state_, DecodeState::kReceiving);
  if (state_ != DecodeState::kReceiving) return;
  lease_.Refresh();
  // Every chunk brings a block, so there are no more of them than blocks.
  if (message.chunk < 0 || message.chunk >= prompt_blocks()) {
    Fail(MakeError(
        ErrorReason::kTransferFailed,
        absl::StrCat("chunk number ", message.chunk, " is out of range")));
    return;
  }
  if (!chunks_.insert(message.chunk).second) return;  // repeated
  if (shared_) {
    TakeShared(message);
  } else {
    waiting_chunks_.push_back(std::move(message));
  }
  MaybeCommit();
}

void DecodeTransfer::TakeShared(const ChunkDone& message) {
  for (size_t i = 0; i < message.shared.size(); ++i) {
    size_t at = message.first_prompt_block + i;
    BlockHold hold = context_->pool->TryHold(message.shared[i]);
    if (at != blocks_.size() || at >= verified_.size() || !hold) {
      Fail(MakeError(
          ErrorReason::kTransferFailed,
          absl::StrCat("shared block ", at, " is out of order or gone")));
      return;
    }
    blocks_.push_back(std::move(hold));
    verified_[at] = true;
    ++summary_.blocks_shared;
  }
}

bool DecodeTransfer::CheckChunk(const ChunkDone& message) {
  for (size_t i = 0; i < message.checksums.size(); ++i) {
    int64_t at = int64_t{message.first_prompt_block} + static_cast<int64_t>(i);
    if (at < have_blocks_ || at >= static_cast<int64_t>(blocks_.size())) {
      Fail(MakeError(ErrorReason::kTransferFailed,
                     absl::StrCat("chunk names prompt block ", at,
                                  ", which was not granted")));
      return true;
    }
    auto page = arrived_.find(blocks_[at].ref());
    if (page == arrived_.end()) return false;
    if (page->second != message.checksums[i]) {
      Nack(message, "checksum");
      return true;
    }
  }
  if (TakeSpoiled(message)) {
    Nack(message, "a page was overwritten");
    return true;
  }
  for (size_t i = 0; i < message.checksums.size(); ++i) {
    size_t at = message.first_prompt_block + i;
    if (!verified_[at]) ++summary_.blocks_moved;
    verified_[at] = true;
  }
  checked_chunks_.insert_or_assign(message.chunk, message);
  return true;
}

void DecodeTransfer::MaybeCommit() {
  std::vector<ChunkDone> chunks = std::exchange(waiting_chunks_, {});
  for (ChunkDone& chunk : chunks) {
    if (state_ != DecodeState::kReceiving) return;
    if (!CheckChunk(chunk)) waiting_chunks_.push_back(std::move(chunk));
  }
  if (waiting_chunks_.empty()) {
    context_->timers->Cancel(std::exchange(arrival_timer_, 0));
  } else {
    ArmArrivalTimer();
  }
  if (!commit_.has_value() || !waiting_chunks_.empty() ||
      (state_ != DecodeState::kReceiving && state_ != DecodeState::kMapped)) {
    return;
  }
  if (absl::Status status = Verify(commit_->manifest); !status.ok()) {
    Fail(status);
    return;
  }
  Move(state_, DecodeState::kCommitted);
  lease_.End();
}

void DecodeTransfer::OnCommit(Commit message) {
  if (commit_.has_value() && state_ >= DecodeState::kCommitted) {
    // Repeated: the acknowledgement may have been lost.
    if (state_ == DecodeState::kActive) Send(CommitAck{id_});
    return;
  }
  if (state_ != DecodeState::kMapped && state_ != DecodeState::kReceiving) {
    return;
  }
  lease_.Refresh();
  commit_ = std::move(message);
  MaybeCommit();
}

absl::Status DecodeTransfer::Verify(const KvManifest& manifest) {
  auto mismatch = [&](absl::string_view what) {
    return MakeError(
        ErrorReason::kTransferFailed,
        absl::StrCat("manifest of ", peer_.name, " does not match: ", what));
  };
  if (manifest.layout != context_->layout.id() ||
      manifest.content != context_->content) {
    return mismatch("layout or model");
  }
  if (manifest.prompt_tokens != static_cast<int>(history_.size()) ||
      manifest.block_hashes != context_->hasher->Chain(root_, history_)) {
    return mismatch("token hash chain");
  }
  if (manifest.chunks != static_cast<int>(chunks_.size())) {
    return mismatch("chunk count");
  }
  if (static_cast<int>(blocks_.size()) != prompt_blocks() ||
      std::find(verified_.begin(), verified_.end(), false) != verified_.end()) {
    return mismatch("a block is missing");
  }
  if (!shared_ && manifest.moved.size() != blocks_.size() - have_blocks_) {
    return mismatch("moved block count");
  }
  for (const KvManifest::MovedBlock& moved : manifest.moved) {
    if (moved.prompt_block < have_blocks_ ||
        moved.prompt_block >= static_cast<int>(blocks_.size())) {
      return mismatch("moved block out of range");
    }
    auto page = arrived_.find(blocks_[moved.prompt_block].ref());
    if (page == arrived_.end() || page->second != moved.checksum) {
      return mismatch(absl::StrCat("checksum of block ", moved.prompt_block));
    }
  }
  auto resumed = ParseState(manifest.state, leg_.request, root_,
                            context_->tokenizer, context_->context_length);
  if (!resumed.ok()) return mismatch(resumed.status().message());
  if (!GoesOnAfterDelivered(*resumed)) return mismatch("delivered tokens");
  resumed_ = *std::move(resumed);
  return absl::OkStatus();
}

// What the KV was made for is what the client has, and one token more.
bool DecodeTransfer::GoesOnAfterDelivered(
    absl::Span<const ResumedAnswer> answers) const {
  const size_t before = history_.size() - leg_.request.prompt.size();
  for (const ResumedAnswer& answer : answers) {
    if (answer.drawn.size() != before + 1) return false;
    for (size_t i = 0; i < before; ++i) {
      if (answer.drawn[i].token != leg_.delivered[0][i].token) return false;
    }
  }
  return true;
}

void DecodeTransfer::Activate() {
  Move(state_, DecodeState::kActive);
  // Only now: until the fence a landing may still read the source's pages.
  Send(CommitAck{id_});
  pins_.clear();
  context_->probe->TransferEnded(HandoffProbe::Direction::kIn,
                                 summary_.transport, "ok", summary_.bytes_moved,
                                 context_->clock->Now() - credited_at_);
  for (BlockHold& hold : growth_) blocks_.push_back(std::move(hold));
  growth_.clear();
  const KvManifest& manifest = commit_->manifest;
  output_->timings() = manifest.timings;
  answers_ = std::make_unique<AnswerGroup>(
      context_, &leg_, root_, output_.get(),
      [this](const absl::Status& status) { Fail(status); });
  answers_->Resume(std::move(resumed_), std::exchange(blocks_, {}),
                   static_cast<int>(history_.size()), manifest.cached_tokens,
                   summary_);
}

// --- ending ---------------------------------------------------------------

void DecodeTransfer::OnAbort(const Abort& message) {
  if (state_ >= DecodeState::kCommitted) return;
  offer_.reset();  // the peer knows: nothing more to tell it
  // OK: the first token ended the request, nothing is left to decode.
  Fail(message.code == absl::StatusCode::kOk
           ? absl::OkStatus()
           : MakeError(ErrorReason::kTransferFailed,
                       absl::StrCat("prefill worker ", peer_.name,
                                    " gave up: ", message.reason)));
}

void DecodeTransfer::OnFenceAck() {
  fence_acked_ = true;
  Poll();
}

void DecodeTransfer::OnPeerLost(const absl::Status& why) {
  if (state_ >= DecodeState::kCommitted) return;
  offer_.reset();
  Fail(MakeError(ErrorReason::kWorkerLost,
                 absl::StrCat("prefill worker ", peer_.name,
                              " was lost: ", why.message())));
}

void DecodeTransfer::Fail(const absl::Status& status) {
  if (output_ != nullptr) output_->Finish(status);
  switch (state_) {
    case DecodeState::kOffered:
      if (offer_.has_value()) RejectOffer(status);
      Release();
      return;
    case DecodeState::kCredited:
      Release();
      return;
    case DecodeState::kMapped:
    case DecodeState::kReceiving:
    case DecodeState::kCommitted:
      if (offer_.has_value() && state_ != DecodeState::kCommitted) {
        Send(Abort{id_, status.code(), std::string(status.message())});
      }
      context_->probe->TransferEnded(
          HandoffProbe::Direction::kIn, summary_.transport, OutcomeName(status),
          summary_.bytes_moved, context_->clock->Now() - credited_at_);
      BeginRevoke();
      return;
    case DecodeState::kActive:
      Release();
      return;
    case DecodeState::kRevoking:
    case DecodeState::kQuarantined:
    case DecodeState::kFenced:
    case DecodeState::kReleased:
      return;
  }
}

void DecodeTransfer::RejectOffer(const absl::Status& status) {
  ErrorInfo info = ErrorInfoOf(status);
  Send(Reject{id_, status.code(), std::string(status.message()),
              info.retry_after});
}

void DecodeTransfer::BeginRevoke() {
  CancelTimers();
  resumed_.clear();
  Move(state_, DecodeState::kRevoking);
  TryFence();
}

bool DecodeTransfer::Revoke() {
  bool fenced = true;
  for (KvTransport* transport : transports_) {
    bool acked = fence_acked_ && !transport->caps().receiver_validates;
    fenced &= transport->Revoke(id_) || acked;
  }
  return fenced;
}

void DecodeTransfer::TryFence() {
  if (!Revoke()) {
    if (state_ != DecodeState::kRevoking) return;
    Move(state_, DecodeState::kQuarantined);
    for (const TransferPin& pin : pins_) context_->pool->Quarantine(pin.ref());
    return;
  }
  if (state_ == DecodeState::kQuarantined) {
    for (const TransferPin& pin : pins_) context_->pool->Reclaim(pin.ref());
  } else {
    Move(state_, DecodeState::kFenced);
  }
  Release();
}

bool DecodeTransfer::Poll() {
  DecodeState before = state_;
  bool fenced_before = fenced_;
  if (state_ == DecodeState::kRevoking || state_ == DecodeState::kQuarantined) {
    TryFence();
  } else if (state_ == DecodeState::kCommitted) {
    // Two rounds: arrivals that landed before the fence are looked at between.
    if (fenced_) {
      Activate();
    } else {
      fenced_ = Revoke();
    }
  }
  return state_ != before || fenced_ != fenced_before;
}

void DecodeTransfer::Release() {
  CancelTimers();
  if (answers_ != nullptr) answers_->Stop();
  pins_.clear();
  blocks_.clear();
  growth_.clear();
  resumed_.clear();
  Move(state_, DecodeState::kReleased);
}

}  // namespace penstock
