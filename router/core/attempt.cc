#include "router/core/attempt.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// How little a leg's error says about what really happened: a leg often ends
// because its partner did. 0: the leg's own reason.
int Vagueness(LegKind kind, const absl::Status& status) {
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kCancelled:
      return 3;
    case ErrorReason::kTransferFailed:
      return 2;
    case ErrorReason::kWorkerLost:
      return 1;
    case ErrorReason::kQueueFull:  // its own queue, or decode's refusal
      return kind == LegKind::kPrefill ? 1 : 0;
    default:
      return 0;
  }
}

// The same request may do better elsewhere, or here a little later.
bool MaySucceedElsewhere(const absl::Status& status) {
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kQueueFull:
    case ErrorReason::kWorkerLost:
    case ErrorReason::kTransferFailed:
    case ErrorReason::kDraining:
    case ErrorReason::kCancelled:  // by its partner, if not by us
      return true;
    default:
      return false;
  }
}

}  // namespace

const char* AttemptStateName(AttemptState state) {
  constexpr const char* kNames[] = {"opening",  "accepted",  "streaming",
                                    "settling", "succeeded", "failed",
                                    "abandoned"};
  return kNames[static_cast<int>(state)];
}

bool MayFollow(AttemptState from, AttemptState to) {
  using S = AttemptState;
  switch (from) {
    case S::kOpening:
      return to == S::kAccepted || to == S::kSettling || to == S::kFailed ||
             to == S::kAbandoned;
    case S::kAccepted:
      return to == S::kStreaming || to == S::kSucceeded || to == S::kSettling ||
             to == S::kFailed || to == S::kAbandoned;
    case S::kStreaming:
      return to == S::kSucceeded || to == S::kSettling || to == S::kFailed ||
             to == S::kAbandoned;
    case S::kSettling:
      return to == S::kFailed || to == S::kAbandoned;
    case S::kSucceeded:
    case S::kFailed:
    case S::kAbandoned:
      return false;
  }
  return false;
}

Attempt::Attempt(AttemptId id, Leg decode, std::optional<Leg> prefill,
                 MergeOptions merge)
    : id_(id),
      decode_(std::move(decode)),
      prefill_(std::move(prefill)),
      merger_([&] {
        merge.handoff = prefill_.has_value();
        return merge;
      }()) {}

Attempt::Leg& Attempt::leg(LegKind kind) {
  if (kind == LegKind::kDecode) return decode_;
  CHECK(prefill_.has_value()) << "the attempt has no prefill leg";
  return *prefill_;
}

bool Attempt::AnyOpen() const {
  return decode_.open() || (prefill_.has_value() && prefill_->open());
}

std::vector<LegId> Attempt::unfinished() const {
  std::vector<LegId> legs;
  if (!decode_.ended) legs.push_back(decode_.id);
  if (prefill_.has_value() && !prefill_->ended) legs.push_back(prefill_->id);
  return legs;
}

bool Attempt::TakeCancel(LegKind kind) {
  Leg& it = leg(kind);
  return !it.ended && !std::exchange(it.cancelled, true);
}

std::vector<LegId> Attempt::TakeCancellable() {
  std::vector<LegId> legs;
  if (TakeCancel(LegKind::kDecode)) legs.push_back(decode_.id);
  if (prefill_.has_value() && TakeCancel(LegKind::kPrefill)) {
    legs.push_back(prefill_->id);
  }
  return legs;
}

std::vector<KeptPrefix> Attempt::kept() const {
  std::vector<KeptPrefix> kept;
  auto add = [&](const Leg& leg) {
    const int tokens = leg.lost ? 0 : ErrorInfoOf(leg.status).kept_tokens;
    if (tokens > 0) kept.push_back({leg.worker, tokens});
  };
  add(decode_);
  if (prefill_.has_value()) add(*prefill_);
  return kept;
}

int Attempt::held_loads() const {
  return decode_.load.held() + (prefill_.has_value() && prefill_->load.held());
}

void Attempt::MoveTo(AttemptState state) {
  CHECK(MayFollow(state_, state))
      << AttemptStateName(state_) << " -> " << AttemptStateName(state);
  state_ = state;
}

AttemptStep Attempt::OnAccepted(LegKind kind) {
  leg(kind).accepted = true;
  return Advance();
}

AttemptStep Attempt::OnFrame(LegKind kind, TokenFrame frame) {
  if (ended() || state_ == AttemptState::kSettling || leg(kind).ended) {
    return {};
  }
  leg(kind).accepted = true;
  if (absl::Status status = merger_.Push(kind, std::move(frame));
      !status.ok()) {
    return End(MakeError(ErrorReason::kInternal, status.message()),
               Blame::kNobody);
  }
  return Advance();
}

// What acceptances and frames make of the state.
AttemptStep Attempt::Advance() {
  AttemptStep step;
  if (ended() || state_ == AttemptState::kSettling) return step;
  const bool accepted =
      decode_.accepted && (!prefill_.has_value() || prefill_->accepted);
  // A complete answer needs nobody's acceptance any more.
  if (state_ == AttemptState::kOpening && (accepted || merger_.complete())) {
    MoveTo(AttemptState::kAccepted);
    admitted_ = step.admitted = true;
  }
  if (state_ == AttemptState::kOpening) return step;
  step.frames = merger_.Take();
  if (state_ == AttemptState::kAccepted && merger_.received() > 0) {
    MoveTo(AttemptState::kStreaming);
  }
  if (merger_.complete()) {
    AttemptStep end = End(absl::OkStatus(), Blame::kNobody);
    step.next = end.next;
  }
  return step;
}

AttemptStep Attempt::OnLegFinished(LegKind kind, const absl::Status& status) {
  Leg& finished = leg(kind);
  if (finished.ended) return {};
  finished.ended = true;
  if (finished.lost) return {};  // what is to be said was said
  finished.status = status;
  finished.load.Release();
  if (ended()) return {};
  if (state_ == AttemptState::kSettling) {
    return AnyOpen() ? AttemptStep() : EndWithReason();
  }
  return status.ok() ? OnLegDone(kind) : OnLegFailed(kind);
}

AttemptStep Attempt::OnLegDone(LegKind kind) {
  leg(kind).accepted = true;
  AttemptStep step = Advance();
  if (ended()) return step;
  if (!AnyOpen()) {
    AttemptStep end = EndWithReason();
    end.admitted = step.admitted;
    end.frames = std::move(step.frames);
    return end;
  }
  if (kind == LegKind::kPrefill) {
    if (!merger_.prefilled()) {
      return End(
          MakeError(ErrorReason::kInternal,
                    absl::StrCat("prefill worker ", prefill_->worker.name,
                                 " ended without a token")),
          Blame::kPrefill);
    }
    return step;
  }
  // Prefill may have ended the request with its first token; its frame says so
  // and is on its way.
  step.next = AttemptStep::Next::kAwait;
  return step;
}

AttemptStep Attempt::OnLegFailed(LegKind kind) {
  if (!AnyOpen()) return EndWithReason();
  AttemptStep step;
  if (kind == LegKind::kPrefill && state_ == AttemptState::kStreaming &&
      merger_.prefilled()) {
    // Its tokens are delivered. Either decode has the KV, and shows it by
    // decoding, or it learns of the failure as we did.
    Sometimes<"prefill failed after its token was delivered">();
    if (!merger_.decoding()) step.next = AttemptStep::Next::kAwait;
    return step;
  }
  if (!MaySucceedElsewhere(leg(kind).status)) return EndWithReason();
  MoveTo(AttemptState::kSettling);
  step.next = AttemptStep::Next::kSettle;
  return step;
}

AttemptStep Attempt::OnWorkerLost(LegKind kind, const absl::Status& why) {
  Leg& lost = leg(kind);
  if (!lost.open()) return {};
  lost.lost = true;
  lost.status = why;
  lost.load.Release();
  if (ended()) return {};
  if (state_ == AttemptState::kSettling) {
    return AnyOpen() ? AttemptStep() : EndWithReason();
  }
  return OnLegFailed(kind);
}

AttemptStep Attempt::OnTimeout() {
  if (ended()) return {};
  // A prefill that failed after its tokens, when decode went on after all.
  const bool settled = state_ != AttemptState::kSettling && decode_.open() &&
                       merger_.prefilled() && merger_.decoding();
  return settled ? AttemptStep() : EndWithReason();
}

void Attempt::Abandon() {
  if (ended()) return;
  MoveTo(AttemptState::kAbandoned);
  decode_.load.Release();
  if (prefill_.has_value()) prefill_->load.Release();
}

AttemptStep Attempt::End(absl::Status status, Blame blame) {
  MoveTo(status.ok() ? AttemptState::kSucceeded : AttemptState::kFailed);
  decode_.load.Release();
  if (prefill_.has_value()) prefill_->load.Release();
  AttemptStep step;
  step.next = AttemptStep::Next::kEnd;
  step.status = std::move(status);
  step.blame = blame;
  return step;
}

AttemptStep Attempt::EndWithReason() {
  const Leg* best = nullptr;
  LegKind kind = LegKind::kDecode;
  auto consider = [&](const Leg& leg, LegKind of) {
    if (leg.status.ok()) return;
    if (best == nullptr ||
        Vagueness(of, leg.status) < Vagueness(kind, best->status)) {
      best = &leg;
      kind = of;
    }
  };
  consider(decode_, LegKind::kDecode);
  if (prefill_.has_value()) consider(*prefill_, LegKind::kPrefill);
  if (best == nullptr && AnyOpen()) {
    // Nothing failed: what decides is late, as after a jump of our own clock.
    return End(
        MakeError(ErrorReason::kTransferFailed,
                  "one leg has ended, and the other did not show in time "
                  "what that means"),
        Blame::kNobody);
  }
  if (best == nullptr) {
    return End(MakeError(ErrorReason::kInternal,
                         absl::StrCat("decode worker ", decode_.worker.name,
                                      " ended without a last token")),
               Blame::kDecode);
  }
  const ErrorReason reason = ErrorInfoOf(best->status).reason;
  const bool between = reason == ErrorReason::kTransferFailed ||
                       reason == ErrorReason::kWorkerLost;
  // A worker that is gone explains the rest, and there is nobody to leave out.
  for (const Leg* lost : {&decode_, prefill_ ? &*prefill_ : nullptr}) {
    if (lost != nullptr && lost->lost &&
        (between || reason == ErrorReason::kCancelled)) {
      return End(lost->status, Blame::kNobody);
    }
  }
  if (reason == ErrorReason::kCancelled) {
    return End(MakeError(ErrorReason::kTransferFailed,
                         absl::StrCat("worker ", best->worker.name,
                                      " gave up: ", best->status.message())),
               Blame::kPair);
  }
  const Blame blame = between && prefill_.has_value() ? Blame::kPair
                      : kind == LegKind::kDecode      ? Blame::kDecode
                                                      : Blame::kPrefill;
  return End(best->status, blame);
}

}  // namespace penstock
