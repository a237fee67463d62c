#include "decode_worker/core/decode_transfer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// Blocks that nobody holds, or only a request that may come back.
int Available(const WorkerContext& context) {
  const BlockCounts counts = context.pool->counts();
  return counts.free + counts.cached + context.pool->kept();
}

}  // namespace

DecodeTransfer::DecodeTransfer(const WorkerContext* context, TransferId id,
                               std::set<TransferId>* unsettled)
    : context_(context),
      id_(id),
      unsettled_(unsettled),
      lease_(
          context,
          [this] {
            Send(Renew{id_, context_->options.lease});
          },
          [this] {
            Sometimes<"a prefill worker let its lease expire">();
            FailKeeping(MakeError(ErrorReason::kTransferFailed,
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
  if (offer_->content != context_->content) {
    return MakeError(
        ErrorReason::kIncompatibleWorker,
        absl::StrCat("model of ", peer_.name, " differs from this worker's"));
  }
  if (offer_->layout != context_->layout.id()) {
    return MakeError(
        ErrorReason::kIncompatibleWorker,
        absl::StrCat("KV layout of ", peer_.name,
                     " differs from this worker's; give both one --kv-type"));
  }
  // The pages will be cached, spilled and pulled as this worker's own, and
  // those promise its bits.
  if (offer_->numerics != context_->numerics) {
    return MakeError(ErrorReason::kIncompatibleWorker,
                     absl::StrCat("numerics of ", peer_.name,
                                  " differ from this worker's; give both one "
                                  "--precision"));
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

bool DecodeTransfer::ReserveBlocks() {
  // Matching takes time in proportion to the history, and is tried each round.
  if (Available(*context_) < short_of_) return false;
  const int full = static_cast<int>(history_.size()) / kBlockTokens;
  std::vector<BlockHold> have = context_->cache->Match(root_, history_, full);
  const bool go_on =
      context_->kept->Look(id_.request, history_) / kBlockTokens >
      static_cast<int>(have.size());
  if (go_on) {
    // Whole blocks only.
    KeptKv::Prefix kept = context_->kept->Take(id_.request, history_);
    have = std::move(kept.blocks);
    have.erase(have.begin() + kept.computed / kBlockTokens, have.end());
  }
  const int leading = static_cast<int>(have.size());
  const int growth = GrowthBlocks();
  // What only this transfer holds is no reason to keep a margin.
  const auto own =
      std::count_if(have.begin(), have.end(), [&](const BlockHold& hold) {
        return context_->pool->References(hold.ref()) == 1;
      });
  auto fresh = context_->engine->TryReserve(prompt_blocks() + growth - leading,
                                            static_cast<int>(own));
  if (!fresh.has_value()) {
    short_of_ = prompt_blocks() + growth - leading + static_cast<int>(own);
    if (go_on) {
      const int computed = leading * kBlockTokens;
      context_->kept->Keep(id_.request,
                           {{history_.begin(), history_.begin() + computed},
                            std::move(have),
                            computed});
    }
    return false;
  }
  for (int i = 0; i < growth; ++i) {
    growth_.push_back(std::move(fresh->back()));
    fresh->pop_back();
  }
  if (go_on) {
    Sometimes<"decode went on from pages that it had kept">();
  }
  have_blocks_ = leading;
  blocks_ = std::move(have);
  for (BlockHold& hold : *fresh) blocks_.push_back(std::move(hold));
  return true;
}

bool DecodeTransfer::Map() {
  Credit credit{id_, 0, {}, context_->options.lease};
  shared_ = peer_ == context_->self;
  if (shared_) {
    summary_.transport = TransportName(TransportKind::kInproc);
  } else {
    if (!ReserveBlocks()) return false;
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
  if (yields_) answers_->YieldAtNextToken();
  answers_->Resume(std::move(resumed_), std::exchange(blocks_, {}),
                   static_cast<int>(history_.size()), manifest.cached_tokens,
                   summary_);
}

void DecodeTransfer::YieldWhenActive() {
  yields_ = true;
  if (answers_ != nullptr) answers_->YieldAtNextToken();
}

// --- ending ---------------------------------------------------------------

void DecodeTransfer::OnPeerLost(const absl::Status& why) {
  if (state_ >= DecodeState::kCommitted) return;
  offer_.reset();
  FailKeeping(MakeError(ErrorReason::kWorkerLost,
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
      if (offer_.has_value()) {
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
  unsettled_->insert(id_);
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
  const bool was_fenced = fenced_;
  fenced_ = fenced_ || Revoke();
  if (!fenced_) {
    if (state_ != DecodeState::kRevoking) return;
    Sometimes<"pages were quarantined until their fence">();
    Move(state_, DecodeState::kQuarantined);
    for (const TransferPin& pin : pins_) context_->pool->Quarantine(pin.ref());
    return;
  }
  if (state_ == DecodeState::kRevoking) Move(state_, DecodeState::kFenced);
  // Two rounds: arrivals that landed before the fence are looked at between.
  if (keep_ && !was_fenced) return;
  if (state_ == DecodeState::kQuarantined) {
    Sometimes<"quarantined pages were reclaimed">();
    for (const TransferPin& pin : pins_) context_->pool->Reclaim(pin.ref());
  }
  if (keep_) KeepVerified();
  Release();
}

bool DecodeTransfer::Poll() {
  DecodeState before = state_;
  bool fenced_before = fenced_;
  if (fencing()) {
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
  unsettled_->insert(id_);
}

}  // namespace penstock
