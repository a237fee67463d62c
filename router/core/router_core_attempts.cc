// How RouterCore carries attempts out: placing, relaying, retrying, ending.

#include <algorithm>

#include "common/base/check.h"
#include "common/peer/error_reason.h"
#include "router/core/router_core.h"

namespace penstock {
namespace {

PlacementSummary SummaryOf(const Attempt& attempt) {
  return {attempt.prefill().has_value() ? attempt.prefill()->worker.name : "",
          attempt.decode().worker.name};
}

}  // namespace

// --- attempts ---------------------------------------------------------------

absl::StatusOr<Placement> RouterCore::Place(
    const Request& r, absl::Span<const std::string> avoid) {
  RequestFacts facts;
  facts.prompt_tokens = static_cast<int>(r.request.prompt.size());
  facts.max_tokens = r.request.stop.max_tokens;
  // A prompt that is to be scored is computed in full.
  if (r.request.prompt_logprobs < 0) facts.chain = r.chain;
  facts.answers = r.request.answers();
  facts.avoid = avoid;
  return ports_.policy->Place(facts, workers_.view(), *ports_.random);
}

Attempt::Leg RouterCore::OpenLeg(const Request& r, LegKind kind,
                                 const LegPlacement& placement) {
  Attempt::Leg leg;
  leg.id = next_leg_++;
  leg.worker = placement.worker;
  leg.load = workers_.Reserve(placement.worker, placement.load);
  legs_.emplace(
      leg.id,
      LegOwner{r.id(), AttemptId(static_cast<uint32_t>(r.attempts)), kind});
  return leg;
}

void RouterCore::SendLeg(const Request& r, LegKind kind,
                         const Attempt::Leg& leg, const WorkerKey* partner) {
  LegRequest out;
  out.request = r.request;
  out.request.timeout = r.deadline - ports_.clock->Now();
  out.attempt = r.attempt->id();
  out.worker_incarnation = leg.worker.incarnation;
  if (partner != nullptr) {
    out.partner = {partner->name,
                   workers_.Find(*partner)->info.control_address};
  }
  ports_.legs->Start(leg.id, kind, leg.worker, std::move(out));
}

void RouterCore::Start(Request& r, const Placement& placement) {
  if (r.attempts++ == 0) {
    ++running_;
  } else if (r.attempts == 2) {
    ++retrying_;
  }
  PlacementFacts facts;
  facts.request = r.id();
  facts.attempt = AttemptId(static_cast<uint32_t>(r.attempts));
  facts.decode = placement.decode.worker.name;
  facts.prompt_tokens = static_cast<int>(r.request.prompt.size());
  facts.hit_tokens = placement.decode.cached_tokens;
  std::optional<Attempt::Leg> prefill;
  if (placement.prefill.has_value()) {
    facts.prefill = placement.prefill->worker.name;
    facts.hit_tokens = placement.prefill->cached_tokens;
    prefill = OpenLeg(r, LegKind::kPrefill, *placement.prefill);
  }
  Attempt::Leg decode = OpenLeg(r, LegKind::kDecode, placement.decode);
  MergeOptions merge;
  merge.samples = r.request.n;
  merge.deferred = r.request.deferred();
  if (r.request.prompt_logprobs >= 0) {
    merge.scored_prompt = static_cast<int>(r.request.prompt.size());
    merge.scored_before = r.scored;
  }
  r.attempt.emplace(facts.attempt, std::move(decode), std::move(prefill),
                    merge);
  ports_.probe->RequestPlaced(facts);
  const Attempt& attempt = *r.attempt;
  const bool handoff = attempt.prefill().has_value();
  SendLeg(r, LegKind::kDecode, attempt.decode(),
          handoff ? &attempt.prefill()->worker : nullptr);
  if (handoff) {
    SendLeg(r, LegKind::kPrefill, *attempt.prefill(), &attempt.decode().worker);
  }
}

RouterCore::Request* RouterCore::OwnerOf(LegId leg, LegKind* kind) {
  auto it = legs_.find(leg);
  if (it == legs_.end()) return nullptr;
  *kind = it->second.kind;
  auto request = requests_.find(it->second.request);
  if (request == requests_.end()) return nullptr;
  Request& r = *request->second;
  return r.attempt.has_value() && r.attempt->id() == it->second.attempt
             ? &r
             : nullptr;
}

void RouterCore::OnLegAccepted(LegId leg) {
  LegKind kind;
  if (Request* r = OwnerOf(leg, &kind)) {
    Execute(*r, r->attempt->OnAccepted(kind));
  }
}

void RouterCore::OnLegFrame(LegId leg, TokenFrame frame) {
  LegKind kind;
  if (Request* r = OwnerOf(leg, &kind)) {
    Execute(*r, r->attempt->OnFrame(kind, std::move(frame)));
  }
}

void RouterCore::OnLegFinished(LegId leg, const absl::Status& status) {
  LegKind kind;
  Request* r = OwnerOf(leg, &kind);
  legs_.erase(leg);
  if (r != nullptr) {
    Execute(*r, r->attempt->OnLegFinished(kind, status));
    Pump();  // the leg's load is gone
  }
  CheckDrained();
}

void RouterCore::Execute(Request& r, AttemptStep step) {
  if (step.admitted && !std::exchange(r.admitted, true)) {
    r.client->OnAdmitted(SummaryOf(*r.attempt));
  }
  for (TokenFrame& frame : step.frames) Deliver(r, std::move(frame));
  switch (step.next) {
    case AttemptStep::Next::kGoOn:
      return;
    case AttemptStep::Next::kAwait:
      ArmGrace(r, options_.await_grace);
      return;
    case AttemptStep::Next::kSettle:
      CancelLegs(*r.attempt);
      ArmGrace(r, options_.settle_grace);
      return;
    case AttemptStep::Next::kEnd:
      if (step.status.ok()) {
        End(r, step.status);
      } else {
        CancelLegs(*r.attempt);
        OnAttemptFailed(r, step);
      }
      return;
  }
}

void RouterCore::Deliver(Request& r, TokenFrame frame) {
  const Instant now = ports_.clock->Now();
  const int tokens = static_cast<int>(frame.tokens.size());
  if (tokens > 0 && r.delivered == 0) {
    ports_.probe->FirstToken(r.id(), now - r.submitted);
  } else if (tokens > 0) {
    ports_.probe->TokensDelivered(r.id(), tokens, now - r.last_frame);
  }
  r.last_frame = now;
  r.delivered += tokens;
  if (!frame.prompt.tokens.empty()) {
    r.scored =
        frame.prompt.first_index + static_cast<int>(frame.prompt.tokens.size());
  }
  if (frame.finish != FinishReason::kNone) {
    r.finish = frame.finish;
    r.usage = frame.usage;
  }
  r.client->OnFrame(std::move(frame));
}

void RouterCore::ArmGrace(Request& r, absl::Duration grace) {
  ports_.timers->Cancel(r.grace_timer);
  r.grace_timer =
      ports_.timers->Schedule(ports_.clock->Now() + grace, [this, &r] {
        r.grace_timer = 0;
        Execute(r, r.attempt->OnTimeout());
      });
}

void RouterCore::CancelLegs(Attempt& attempt) {
  for (LegId leg : attempt.TakeCancellable()) ports_.legs->Cancel(leg);
}

// --- ends -------------------------------------------------------------------

void RouterCore::OnAttemptFailed(Request& r, const AttemptStep& step) {
  ports_.timers->Cancel(std::exchange(r.grace_timer, 0));
  if (MayRetry(r, step.status)) {
    absl::StatusOr<Placement> placement = PlaceAgain(r, step.blame);
    if (placement.ok()) {
      ports_.probe->RequestRetried(r.id(), ErrorInfoOf(step.status).reason);
      Start(r, *placement);
      return;
    }
  }
  End(r, step.status);
}

// Only what was not processed as far as the client can see, and never so much
// at once that an outage feeds itself.
bool RouterCore::MayRetry(const Request& r, const absl::Status& status) const {
  if (r.delivered > 0 || r.attempts >= options_.max_attempts) return false;
  const int budget = std::max(
      options_.retry_floor, static_cast<int>(options_.retry_share * running_));
  if (r.attempts == 1 && retrying_ >= budget) return false;
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

absl::StatusOr<Placement> RouterCore::PlaceAgain(const Request& r,
                                                 Blame blame) {
  const std::string decode = r.attempt->decode().worker.name;
  const std::string prefill = r.attempt->prefill().has_value()
                                  ? r.attempt->prefill()->worker.name
                                  : decode;
  switch (blame) {
    case Blame::kNobody:
      return Place(r, {});
    case Blame::kPrefill:
      return Place(r, {prefill});
    case Blame::kDecode:
      return Place(r, {decode});
    case Blame::kPair:
      break;
  }
  // Either may be at fault: without both, then without one.
  absl::StatusOr<Placement> placement = Place(r, {prefill, decode});
  if (placement.ok() || prefill == decode) return placement;
  placement = Place(r, {prefill});
  if (placement.ok()) return placement;
  return Place(r, {decode});
}

void RouterCore::Abort(Request& r, const absl::Status& status) {
  if (r.attempt.has_value()) {
    CancelLegs(*r.attempt);
    r.attempt->Abandon();
  }
  End(r, status);
}

void RouterCore::End(Request& r, const absl::Status& status) {
  ports_.timers->Cancel(r.deadline_timer);
  ports_.timers->Cancel(r.grace_timer);
  if (r.queued.has_value()) queue_.erase(*r.queued);
  if (r.attempts > 0) --running_;
  if (r.attempts > 1) --retrying_;
  std::unique_ptr<Request> ended =
      std::move(requests_.extract(r.id()).mapped());
  ended->attempt.reset();

  RequestOutcome outcome;
  outcome.request = ended->id();
  outcome.status = status;
  outcome.finish = ended->finish;
  outcome.usage = ended->usage;
  outcome.delivered_tokens = ended->delivered;
  outcome.attempts = ended->attempts;
  outcome.elapsed = ports_.clock->Now() - ended->submitted;
  ended->client->OnFinished(status);
  ports_.probe->RequestFinished(outcome);
  ReportInFlight();
  Pump();
  CheckDrained();
}

}  // namespace penstock
