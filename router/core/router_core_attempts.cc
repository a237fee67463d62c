// How RouterCore carries attempts out: placing, relaying, ending.

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"
#include "router/core/router_core.h"

namespace penstock {
namespace {

PlacementSummary SummaryOf(const Attempt& attempt) {
  return {attempt.prefill().has_value() ? attempt.prefill()->worker.name : "",
          attempt.decode().worker.name};
}

}  // namespace

absl::StatusOr<Placement> RouterCore::Place(
    const Request& r, absl::Span<const std::string> avoid) {
  const int prompt = static_cast<int>(r.request.prompt.size());
  RequestFacts facts;
  facts.session = SessionNumber(r.request.tenant, r.request.session);
  facts.prompt_tokens = HistoryTokens(r);
  facts.max_tokens =
      std::max(0, r.request.stop.max_tokens - (facts.prompt_tokens - prompt));
  const std::vector<KeptPrefix> kept = KeptFor(r);
  // A prompt that is to be scored is computed in full.
  if (r.request.prompt_logprobs < 0 || r.delivered.scored() == prompt) {
    facts.chain = r.chain;
    facts.kept = kept;
  }
  facts.answers = r.request.answers();
  facts.beams = r.request.beam.width > 0;
  // Answers that have parted are no handoff's business.
  facts.decode_alone =
      facts.prompt_tokens == prompt && r.delivered.tokens() > 0;
  facts.avoid = avoid;
  facts.record = journal_.WantsRecord();
  workers_.ExpirePredictions();
  return ports_.policy->Place(facts, workers_.view(), *ports_.random);
}

// As many as LegRequest.history() has.
int RouterCore::HistoryTokens(const Request& r) {
  const bool one = r.request.answers() == 1 && !r.request.deferred();
  return static_cast<int>(r.request.prompt.size()) +
         (one ? r.delivered.tokens() : 0);
}

std::vector<KeptPrefix> RouterCore::KeptFor(const Request& r) const {
  // What has failed twice in a row is not to be relied on.
  if (r.fruitless > 1) return {};
  std::vector<KeptPrefix> kept = r.kept;
  if (!r.attempt.has_value()) return kept;
  // Who takes part in it is not on the list of those that keep something.
  const auto now = r.attempt->kept();
  kept.insert(kept.end(), now.begin(), now.end());
  return kept;
}

Attempt::Leg RouterCore::OpenLeg(const Request& r, LegKind kind,
                                 const LegPlacement& placement) {
  Attempt::Leg leg;
  leg.id = next_leg_++;
  leg.worker = placement.worker;
  leg.load = workers_.Reserve(placement.worker, placement.load);
  workers_.NotePlaced(kind, SessionNumber(r.request.tenant, r.request.session),
                      placement.worker);
  leg.keeps = std::any_of(
      r.kept.begin(), r.kept.end(),
      [&](const KeptPrefix& kept) { return kept.worker == placement.worker; });
  legs_.emplace(
      leg.id,
      LegOwner{r.id(), AttemptId(static_cast<uint32_t>(r.attempts)), kind});
  return leg;
}

void RouterCore::SendLeg(const Request& r, LegKind kind,
                         const Attempt::Leg& leg, const WorkerKey* partner,
                         const LegSource& source) {
  LegRequest out;
  out.request = r.request;
  out.request.timeout = r.deadline - ports_.clock->Now();
  out.attempt = r.attempt->id();
  out.worker_incarnation = leg.worker.incarnation;
  if (partner != nullptr) {
    out.partner = {partner->name,
                   workers_.Find(*partner)->info.control_address};
  }
  if (source.owner != nullptr) {
    out.source = {source.owner->info.key.name,
                  source.owner->info.control_address};
    out.source_tokens = source.blocks * kBlockTokens;
  }
  out.delivered = r.delivered.ForLegs(r.request);
  ports_.legs->Start(leg.id, kind, leg.worker, std::move(out));
}

LegSource RouterCore::SourceFor(const Request& r,
                                const LegPlacement& placement) const {
  // A prompt that is to be scored is computed in full.
  if (!options_.name_sources || r.request.prompt_logprobs >= 0) return {};
  return FindSource(workers_.view(), r.chain, placement);
}

void RouterCore::Start(Request& r, const Placement& placement) {
  // What it waits for is of the attempt before.
  ports_.timers->Cancel(std::exchange(r.wait_timer, 0));
  r.kept = KeptFor(r);
  if (r.attempts++ == 0) {
    ++running_;
    r.began = ports_.clock->Now();
    admission_.Began(r.request.tenant);
    ports_.probe->RequestBegan(r.id(), ports_.clock->Now() - r.submitted);
  }
  ++r.fruitless;
  PlacementFacts facts;
  facts.request = r.id();
  facts.attempt = AttemptId(static_cast<uint32_t>(r.attempts));
  facts.decode = placement.decode.worker.name;
  facts.prompt_tokens = HistoryTokens(r);
  facts.hit_tokens = placement.decode.cached_tokens;
  std::optional<Attempt::Leg> prefill;
  if (placement.prefill.has_value()) {
    facts.prefill = placement.prefill->worker.name;
    facts.hit_tokens = placement.prefill->cached_tokens;
    prefill = OpenLeg(r, LegKind::kPrefill, *placement.prefill);
  }
  Attempt::Leg decode = OpenLeg(r, LegKind::kDecode, placement.decode);
  // They take it, or say once more what they keep.
  std::erase_if(r.kept, [&](const KeptPrefix& kept) {
    return kept.worker == decode.worker ||
           (prefill.has_value() && kept.worker == prefill->worker);
  });
  MergeOptions merge;
  merge.samples = r.request.n;
  merge.deferred = r.request.deferred();
  // What is asked for none is drawn from once, so that it has an end.
  merge.max_tokens = std::max(1, r.request.stop.max_tokens);
  merge.starts = r.delivered.starts();
  if (r.request.prompt_logprobs >= 0) {
    merge.scored_prompt = static_cast<int>(r.request.prompt.size());
    merge.scored_before = r.delivered.scored();
  }
  for (const Attempt::Leg* leg :
       {&decode, prefill.has_value() ? &*prefill : nullptr}) {
    if (leg == nullptr) continue;
    guard_.Started(leg == &decode ? LegKind::kDecode : LegKind::kPrefill,
                   leg->worker, ports_.clock->Now());
  }
  FollowGuard();
  // Whoever computes the prompt has it soon, the next request behind it finds
  // it; who is handed it has nothing before that.
  workers_.Predict(prefill.has_value() ? prefill->worker : decode.worker,
                   r.chain);
  r.handed = !prefill.has_value();
  r.attempt.emplace(facts.attempt, std::move(decode), std::move(prefill),
                    merge);
  ports_.probe->RequestPlaced(facts);
  journal_.Placed(facts, placement);
  const Attempt& attempt = *r.attempt;
  const bool handoff = attempt.prefill().has_value();
  // For the leg that computes.
  const LegSource source =
      SourceFor(r, handoff ? *placement.prefill : placement.decode);
  SendLeg(r, LegKind::kDecode, attempt.decode(),
          handoff ? &attempt.prefill()->worker : nullptr,
          handoff ? LegSource() : source);
  if (handoff) {
    SendLeg(r, LegKind::kPrefill, *attempt.prefill(), &attempt.decode().worker,
            source);
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
    if (kind == LegKind::kDecode && !r->attempt->ended() &&
        !std::exchange(r->handed, true)) {
      workers_.Predict(r->attempt->decode().worker, r->chain);
    }
    Execute(*r, r->attempt->OnFrame(kind, std::move(frame)));
    if (!again_.empty()) Pump();  // the retry budget may have room now
  }
}

void RouterCore::OnLegFinished(LegId leg, const absl::Status& status) {
  LegKind kind;
  Request* r = OwnerOf(leg, &kind);
  legs_.erase(leg);
  WatchEnding();
  if (r != nullptr) {
    const WorkerKey worker = kind == LegKind::kDecode
                                 ? r->attempt->decode().worker
                                 : r->attempt->prefill()->worker;
    // Sooner than its report: others need not go there to be refused.
    const bool drains = ErrorInfoOf(status).reason == ErrorReason::kDraining &&
                        workers_.NoteDraining(worker);
    Execute(*r, r->attempt->OnLegFinished(kind, status));
    if (drains) OnHealthChanged(worker, WorkerHealth::kDraining);
    Pump();  // the leg's load is gone
  }
  CheckDrained();
}

void RouterCore::Execute(Request& r, AttemptStep step) {
  if (step.admitted) {
    const PlacementSummary placement = SummaryOf(*r.attempt);
    if (std::exchange(r.admitted, true)) {
      r.client->OnMoved(placement);
    } else {
      r.client->OnAdmitted(placement);
    }
  }
  for (TokenFrame& frame : step.frames) Deliver(r, std::move(frame));
  switch (step.next) {
    case AttemptStep::Next::kGoOn:
      return;
    case AttemptStep::Next::kAwait:
      ArmGrace(r, options_.await_grace);
      return;
    case AttemptStep::Next::kSettle:
      ArmGrace(r, options_.settle_grace);
      return;
    case AttemptStep::Next::kEnd:
      if (step.status.ok()) {
        LetEnd(*r.attempt);
        Judge(r, &step);
        End(r, step.status);
      } else {
        CancelLegs(*r.attempt);
        WithdrawPredictions(r);
        Judge(r, &step);
        OnAttemptFailed(r, step);
      }
      return;
  }
}

void RouterCore::Deliver(Request& r, TokenFrame frame) {
  const Instant now = ports_.clock->Now();
  const int tokens = static_cast<int>(frame.tokens.size());
  if (tokens > 0 && r.delivered.tokens() == 0) {
    ports_.probe->FirstToken(r.id(), now - r.submitted);
  } else if (tokens > 0) {
    ports_.probe->TokensDelivered(r.id(), tokens, now - r.last_frame);
  }
  r.last_frame = now;
  r.delivered.Add(frame);
  if (frame.usage.prompt_tokens > 0 && r.attempts > 1) {
    // Whatever the last worker counts, the client gets one account of it all.
    frame.usage.cached_tokens =
        std::min(frame.usage.cached_tokens, frame.usage.prompt_tokens);
    if (!r.request.deferred()) {
      frame.usage.completion_tokens = r.delivered.tokens();
    }
  }
  if (r.fruitless > 0) {
    NoteProgress(r);
    journal_.FirstToken(r.id());
  }
  r.fruitless = r.refusals = 0;
  EndRetrying(r);
  if (frame.finish != FinishReason::kNone) {
    r.finish = frame.finish;
    r.usage = frame.usage;
  }
  r.client->OnFrame(std::move(frame));
}

void RouterCore::ArmGrace(Request& r, absl::Duration grace) {
  ports_.timers->Cancel(r.wait_timer);
  r.wait_timer =
      ports_.timers->Schedule(ports_.clock->Now() + grace, [this, &r] {
        r.wait_timer = 0;
        Execute(r, r.attempt->OnTimeout());
      });
}

void RouterCore::CancelLegs(Attempt& attempt) {
  for (LegId leg : attempt.TakeCancellable()) ports_.legs->Cancel(leg);
}

// Its workers need not come to hold the prompt; others that they serve may
// predict it again.
void RouterCore::WithdrawPredictions(const Request& r) {
  workers_.Withdraw(r.attempt->decode().worker, r.chain);
  if (const auto& prefill = r.attempt->prefill(); prefill.has_value()) {
    workers_.Withdraw(prefill->worker, r.chain);
  }
}

void RouterCore::LetEnd(Attempt& attempt) {
  const Instant until = ports_.clock->Now() + options_.await_grace;
  for (LegId leg : attempt.TakeCancellable()) ending_.emplace_back(until, leg);
  WatchEnding();
}

void RouterCore::WatchEnding() {
  while (!ending_.empty() && !legs_.contains(ending_.front().second)) {
    ending_.pop_front();
  }
  if (ending_.empty()) {
    ports_.timers->Cancel(std::exchange(ending_timer_, 0));
  } else if (ending_timer_ == 0) {
    ending_timer_ = ports_.timers->Schedule(ending_.front().first,
                                            [this] { OnEndingDue(); });
  }
}

void RouterCore::OnEndingDue() {
  ending_timer_ = 0;
  while (!ending_.empty() && ending_.front().first <= ports_.clock->Now()) {
    const LegId leg = ending_.front().second;
    ending_.pop_front();
    if (legs_.contains(leg)) ports_.legs->Cancel(leg);
  }
  WatchEnding();
}

void RouterCore::Abort(Request& r, const absl::Status& status) {
  if (r.attempt.has_value()) {
    const bool goes_on = !r.attempt->ended();
    CancelLegs(*r.attempt);
    r.attempt->Abandon();
    if (goes_on) {
      WithdrawPredictions(r);
      Judge(r, nullptr);
    }
  }
  End(r, status);
}

void RouterCore::End(Request& r, const absl::Status& status) {
  ports_.timers->Cancel(r.deadline_timer);
  ports_.timers->Cancel(r.wait_timer);
  Dequeue(r);
  EndRetrying(r);
  if (r.attempts > 0) {
    --running_;
    admission_.Ended(r.request.tenant);
  }
  std::unique_ptr<Request> ended =
      std::move(requests_.extract(r.id()).mapped());
  ended->attempt.reset();
  FollowGuard();

  RequestOutcome outcome;
  outcome.request = ended->id();
  // What a worker keeps is no client's business.
  outcome.status = status.ok() ? status : WithKeptTokens(status, 0);
  outcome.finish = ended->finish;
  outcome.usage = ended->usage;
  outcome.delivered_tokens = ended->delivered.tokens();
  outcome.attempts = ended->attempts;
  outcome.elapsed = ports_.clock->Now() - ended->submitted;
  ended->client->OnFinished(outcome.status);
  // What a later attempt finds cached, it was handed.
  const bool judged = status.ok() && outcome.attempts == 1;
  if (judged && ended->request.answers() == 1) {
    forecast_.Note(options_.workers.work.Service(
                       static_cast<int>(ended->request.prompt.size()),
                       ended->believed, outcome.usage.completion_tokens),
                   ports_.clock->Now() - ended->began);
  }
  journal_.Ended(
      outcome.request,
      judged ? std::optional(outcome.usage.cached_tokens) : std::nullopt);
  ports_.probe->RequestFinished(outcome);
  ReportInFlight();
  Pump();
  CheckDrained();
}

}  // namespace penstock
