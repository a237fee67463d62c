// What RouterCore learns of its workers from how attempts go.

#include "common/base/sometimes.h"
#include "common/peer/error_reason.h"
#include "router/core/router_core.h"

namespace penstock {
namespace {

// Errors that are somebody's fault. A worker that is full, drains or was asked
// for what it cannot do is well.
bool IsFault(const absl::Status& status) {
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kWorkerLost:
    case ErrorReason::kTransferFailed:
    case ErrorReason::kInternal:
    case ErrorReason::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

void RouterCore::Judge(const Request& r, const AttemptStep* step) {
  const Attempt& attempt = *r.attempt;
  auto verdict = [&](Blame own) {
    if (step == nullptr) return Verdict::kNeutral;
    if (step->status.ok()) return Verdict::kGood;
    const bool blamed = step->blame == own || step->blame == Blame::kPair;
    return blamed && IsFault(step->status) ? Verdict::kBad : Verdict::kNeutral;
  };
  const Instant now = ports_.clock->Now();
  guard_.Ended(LegKind::kDecode, attempt.decode().worker,
               verdict(Blame::kDecode), now);
  if (attempt.prefill().has_value()) {
    guard_.Ended(LegKind::kPrefill, attempt.prefill()->worker,
                 verdict(Blame::kPrefill), now);
  }
  FollowGuard();
}

void RouterCore::NoteProgress(const Request& r) {
  const Instant now = ports_.clock->Now();
  guard_.Progressed(LegKind::kDecode, r.attempt->decode().worker, now);
  if (r.attempt->prefill().has_value()) {
    guard_.Progressed(LegKind::kPrefill, r.attempt->prefill()->worker, now);
  }
  FollowGuard();
}

void RouterCore::FollowGuard() {
  const Instant now = ports_.clock->Now();
  if (guard_.dirty() || guard_due_ <= now) {
    for (const WorkerGuard::Change& change : guard_.Update(now)) {
      if (change.vetoed) {
        Sometimes<"a worker got no more work for its failures">();
      }
      workers_.Veto(change.leg, change.worker, change.vetoed);
      ports_.probe->WorkerVetoed(change.leg, change.worker, change.vetoed);
    }
    guard_due_ = guard_.next(now);
    ports_.timers->Cancel(std::exchange(guard_timer_, 0));
  }
  // Nobody waits for it while there is no request.
  if (requests_.empty() || guard_due_ == Instant::Infinite()) {
    ports_.timers->Cancel(std::exchange(guard_timer_, 0));
  } else if (guard_timer_ == 0) {
    guard_timer_ = ports_.timers->Schedule(guard_due_, [this] {
      guard_timer_ = 0;
      FollowGuard();
      Pump();
    });
  }
}

}  // namespace penstock
