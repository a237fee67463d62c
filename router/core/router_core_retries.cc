// How RouterCore goes on with a request whose attempt has failed.

#include <algorithm>

#include "common/base/sometimes.h"
#include "common/peer/error_reason.h"
#include "router/core/router_core.h"

namespace penstock {

void RouterCore::OnAttemptFailed(Request& r, const AttemptStep& step) {
  ports_.timers->Cancel(std::exchange(r.wait_timer, 0));
  if (IsMereRefusal(r, step.status)) {
    --r.fruitless;
    ++r.refusals;
  }
  if (!MayRetry(r, step.status)) {
    End(r, step.status);
    return;
  }
  r.failure = step.status;
  r.moving = ErrorInfoOf(step.status).reason == ErrorReason::kDraining;
  r.avoid = WhomToAvoid(r, step.blame);
  if (r.moving) EndRetrying(r);
  if (r.delivered.tokens() > 0) HashHistory(r);
  // Refusals do not end a request, so they must not follow at once for ever.
  const bool at_once = r.refusals < options_.max_attempts;
  const bool may_go_on = MayGoOn(r);
  if (may_go_on) BeginRetrying(r);
  if (may_go_on && at_once) {
    absl::StatusOr<Placement> placement = PlaceAvoiding(r, r.avoid);
    if (placement.ok()) {
      StartAgain(r, *placement);
      return;
    }
  }
  WaitForPlace(r);
}

bool RouterCore::IsMereRefusal(const Request& r,
                               const absl::Status& status) const {
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kDraining:
      return !r.attempt->admitted();
    case ErrorReason::kQueueFull:
      return r.delivered.tokens() > 0;
    default:
      return false;
  }
}

bool RouterCore::MayRetry(const Request& r, const absl::Status& status) const {
  if (r.fruitless >= options_.max_attempts) return false;
  switch (ErrorInfoOf(status).reason) {
    case ErrorReason::kQueueFull:
    case ErrorReason::kWorkerLost:
    case ErrorReason::kTransferFailed:
    case ErrorReason::kDraining:
      return true;
    default:
      return false;
  }
}

// Never so much at once that an outage feeds itself. Who pauses counts: else
// all that fail would take turns, and the pauses would save nothing.
bool RouterCore::RetryBudgetLeft() const {
  return retrying_ <
         std::max(options_.retry_floor,
                  static_cast<int>(options_.retry_share * running_));
}

bool RouterCore::MayGoOn(const Request& r) const {
  return r.moving || r.retrying || RetryBudgetLeft();
}

void RouterCore::BeginRetrying(Request& r) {
  if (!r.moving) retrying_ += !std::exchange(r.retrying, true);
}

void RouterCore::EndRetrying(Request& r) {
  retrying_ -= std::exchange(r.retrying, false);
}

absl::StatusOr<Placement> RouterCore::PlaceAvoiding(
    const Request& r, absl::Span<const WorkerNames> choices) {
  absl::StatusOr<Placement> placement = absl::UnknownError("not tried");
  for (const WorkerNames& names : choices) {
    if (placement.ok()) break;
    placement = Place(r, names);
  }
  return placement;
}

std::vector<RouterCore::WorkerNames> RouterCore::WhomToAvoid(
    const Request& r, Blame blame) const {
  const std::string decode = r.attempt->decode().worker.name;
  const std::string prefill = r.attempt->prefill().has_value()
                                  ? r.attempt->prefill()->worker.name
                                  : decode;
  const WorkerNames culprit = {blame == Blame::kPrefill ? prefill : decode};
  // A worker that drains takes back what nobody else can.
  if (r.moving) return {culprit, {}};
  if (blame == Blame::kNobody) return {{}};
  if (blame != Blame::kPair || prefill == decode) return {culprit};
  // Either may be at fault: who keeps the KV is the last to be left out.
  const std::vector<KeptPrefix> kept = KeptFor(r);
  auto keeps = [&](const std::string& name) {
    return std::any_of(kept.begin(), kept.end(), [&](const KeptPrefix& k) {
      return k.worker.name == name;
    });
  };
  if (keeps(prefill)) return {{decode}, {prefill}};
  if (keeps(decode)) return {{prefill}, {decode}};
  return {{prefill, decode}, {prefill}, {decode}};
}

void RouterCore::StartAgain(Request& r, const Placement& placement) {
  if (r.delivered.tokens() > 0) {
    Sometimes<"a request went on after tokens that were delivered">();
  }
  BeginRetrying(r);
  ports_.probe->RequestRetried(r.id(), ErrorInfoOf(r.failure).reason);
  Start(r, placement);
}

void RouterCore::WaitForPlace(Request& r) {
  Sometimes<"a failed request waited for a place">();
  // No two of those that failed together come back together.
  const double share =
      0.5 + 0.5 * static_cast<double>(ports_.random->Below(1000)) / 1000;
  r.not_before =
      ports_.clock->Now() + share * options_.retry_pause *
                                (1 << std::min(r.fruitless + r.refusals, 6));
  r.queued = QueueKey{-int64_t{r.request.priority}, r.arrival};
  again_.emplace(*r.queued, &r);
  r.wait_timer = ports_.timers->Schedule(r.not_before, [this, &r] {
    r.wait_timer = 0;
    Pump();
  });
  WatchHope();
}

void RouterCore::PumpRetries() {
  while (PumpRetriesOnce()) continue;
}

bool RouterCore::PumpRetriesOnce() {
  bool held_up = false, given_up = false;
  for (auto next = again_.begin(); next != again_.end();) {
    Request& r = *(next++)->second;
    if (ports_.clock->Now() < r.not_before) continue;
    if (!MayGoOn(r)) {
      held_up = true;
      continue;
    }
    absl::StatusOr<Placement> placed = PlaceAvoiding(r, r.avoid);
    if (!placed.ok() && !r.avoid.back().empty()) placed = Place(r, {});
    if (placed.ok()) {
      Dequeue(r);
      StartAgain(r, *placed);
      continue;
    }
    // Its pause is over: it waits for a place, as new ones do.
    given_up |= r.retrying;
    EndRetrying(r);
    const bool full =
        ErrorInfoOf(placed.status()).reason == ErrorReason::kQueueFull;
    if (!full && !Hopeful()) End(r, r.failure);
    // A worker that could hold it may come back, and others need not wait.
    if (full) return false;
  }
  return held_up && given_up;
}

void RouterCore::MoveWaitingLegs(const WorkerKey& worker,
                                 const absl::Status& why) {
  const bool drains = ErrorInfoOf(why).reason == ErrorReason::kDraining;
  auto waits_there = [&](const Attempt::Leg& leg) {
    return leg.worker == worker && leg.open() && !leg.accepted && !leg.keeps;
  };
  for (RequestId id : RequestsInOrder()) {
    Request& r = *requests_.at(id);
    if (!r.attempt.has_value() ||
        r.attempt->state() != AttemptState::kOpening) {
      continue;
    }
    const bool waits = waits_there(r.attempt->decode()) ||
                       (r.attempt->prefill().has_value() &&
                        waits_there(*r.attempt->prefill()));
    if (!waits) continue;
    // It finishes what it has: nobody is moved to nowhere.
    absl::StatusOr<Placement> placement = Place(r, {worker.name});
    if (!placement.ok() || (!drains && !ReportOnTime(*placement))) continue;
    r.moving = drains;
    if (!MayGoOn(r)) return;
    if (drains) {
      Sometimes<"a waiting leg was moved off a draining worker">();
    } else {
      Sometimes<"a waiting leg was moved off a suspect worker">();
    }
    CancelLegs(*r.attempt);
    r.attempt->Abandon();
    Judge(r, nullptr);
    if (drains) EndRetrying(r);
    --r.fruitless;  // it had not begun
    r.failure = why;
    StartAgain(r, *placement);
  }
}

bool RouterCore::ReportOnTime(const Placement& placement) const {
  return workers_.ReportsOnTime(placement.decode.worker) &&
         (!placement.prefill.has_value() ||
          workers_.ReportsOnTime(placement.prefill->worker));
}

}  // namespace penstock
