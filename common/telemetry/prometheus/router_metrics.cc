#include "common/telemetry/prometheus/router_metrics.h"

#include <algorithm>

#include "common/telemetry/prometheus/latency_buckets.h"
#include "common/telemetry/prometheus/metric_makers.h"
#include "router/core/hindsight.h"

namespace penstock {
namespace {

using prometheus::Labels;
using prometheus::Registry;

std::string Name(ErrorReason reason) { return std::string(ReasonName(reason)); }

const char* FinishName(FinishReason finish) {
  return finish == FinishReason::kLength ? "length" : "stop";
}

}  // namespace

RouterMetrics::RouterMetrics(const std::string& model, Registry& registry)
    : labels_({{"model_name", model}, {"engine", "0"}, {"role", "router"}}),
      requests_(Counters(registry, "penstock_router_requests_total",
                         "Requests that ended, by outcome")),
      rejected_(Counters(registry, "penstock_router_rejected_total",
                         "Requests refused before they were taken")),
      retries_(Counters(registry, "penstock_router_retries_total",
                        "Attempts after the first, by what failed")),
      decisions_(Counters(registry, "penstock_router_pd_decision_total",
                          "Placements: handed off, or prefilled by decode")),
      success_(Counters(registry, "vllm:request_success_total",
                        "Requests that finished, by finish reason")),
      worker_up_(Gauges(registry, "penstock_worker_up",
                        "1 while a worker is registered and ready")),
      worker_vetoed_(Gauges(registry, "penstock_worker_vetoed",
                            "1 while a worker gets no leg of this kind, for "
                            "those that failed there")),
      running_(Gauge(registry, labels_, "penstock_router_inflight_requests",
                     "Requests with an attempt under way")),
      queued_(Gauge(registry, labels_, "penstock_router_queued_requests",
                    "Requests that wait for a place")),
      prompt_tokens_(Counter(registry, labels_, "vllm:prompt_tokens_total",
                             "Prompt tokens of requests taken")),
      generated_tokens_(Counter(registry, labels_,
                                "vllm:generation_tokens_total",
                                "Tokens delivered to clients")),
      predicted_hits_(Counter(registry, labels_,
                              "penstock_router_predicted_hit_tokens_total",
                              "Prompt tokens that placement believed cached")),
      cached_tokens_(Counter(registry, labels_,
                             "penstock_router_hit_tokens_total",
                             "Prompt tokens that workers found cached")),
      resyncs_(Counter(registry, labels_, "penstock_router_cache_resyncs_total",
                       "Times a worker had to repeat its cache events")),
      judged_hits_(Counter(registry, labels_,
                           "penstock_router_judged_tokens_total",
                           "Prompt tokens of placements whose hits are known")),
      overpredicted_hits_(
          Counters(registry, "penstock_router_hit_error_tokens_total",
                   "Prompt tokens whose hit was predicted wrongly")
              .Add(With({{"kind", "missed"}}))),
      underpredicted_hits_(
          Counters(registry, "penstock_router_hit_error_tokens_total",
                   "Prompt tokens whose hit was predicted wrongly")
              .Add(With({{"kind", "unexpected"}}))),
      hit_error_(Gauge(registry, labels_, "penstock_router_hit_error_ratio",
                       "Of the last placements' prompt tokens, those whose hit "
                       "was predicted wrongly")),
      hit_alarm_(Gauge(registry, labels_, "penstock_router_hit_alarm",
                       "1 while predicted and actual hits part")),
      regret_(Histogram(registry, labels_,
                        "penstock_router_decision_regret_seconds",
                        "Time to the first token of sampled placements above "
                        "what the best other prefill worker was predicted to "
                        "take",
                        FirstTokenBuckets())),
      predicted_ttft_(
          Histogram(registry, labels_, "penstock_router_predicted_ttft_seconds",
                    "Time to the first token as predicted at the placement",
                    FirstTokenBuckets())),
      ttft_error_(Histogram(
          registry, labels_, "penstock_router_ttft_error_seconds",
          "Between predicted and actual time from placement to first token",
          FirstTokenBuckets())),
      ttft_(Histogram(registry, labels_, "vllm:time_to_first_token_seconds",
                      "Time from taking a request to its first token",
                      FirstTokenBuckets())),
      itl_(Histogram(registry, labels_, "vllm:inter_token_latency_seconds",
                     "Time between tokens", InterTokenBuckets())),
      e2e_(Histogram(registry, labels_, "vllm:e2e_request_latency_seconds",
                     "Time from taking a request to its end",
                     RequestBuckets())),
      queue_(Histogram(registry, labels_, "penstock_router_queue_seconds",
                       "Time from taking a request to its first place",
                       FirstTokenBuckets())),
      native_ttft_(Histogram(registry, labels_, "penstock_router_ttft_seconds",
                             "Time from taking a request to its first token",
                             FirstTokenBuckets())),
      native_itl_(Histogram(registry, labels_, "penstock_router_itl_seconds",
                            "Time between tokens", InterTokenBuckets())) {}

Labels RouterMetrics::With(Labels more) const {
  more.insert(labels_.begin(), labels_.end());
  return more;
}

void RouterMetrics::RequestStarted(RequestId request, int prompt_tokens) {
  prompt_tokens_.Increment(prompt_tokens);
}

void RouterMetrics::RequestRejected(ErrorReason reason) {
  rejected_.Add(With({{"reason", Name(reason)}})).Increment();
}

void RouterMetrics::RequestBegan(RequestId request, absl::Duration waited) {
  queue_.Observe(absl::ToDoubleSeconds(waited));
}

void RouterMetrics::RequestPlaced(const PlacementFacts& placement) {
  predicted_hits_.Increment(placement.hit_tokens);
  decisions_
      .Add(
          With({{"decision", placement.prefill.empty() ? "local" : "handoff"}}))
      .Increment();
}

void RouterMetrics::RequestRetried(RequestId request, ErrorReason reason) {
  retries_.Add(With({{"reason", Name(reason)}})).Increment();
}

void RouterMetrics::DecisionJudged(const DecisionOutcome& outcome) {
  predicted_ttft_.Observe(absl::ToDoubleSeconds(outcome.predicted_first_token));
  if (const auto regret = RegretInHindsight(outcome)) {
    regret_.Observe(absl::ToDoubleSeconds(*regret));
  }
  if (outcome.first_token.has_value()) {
    ttft_error_.Observe(absl::ToDoubleSeconds(absl::AbsDuration(
        *outcome.first_token - outcome.predicted_first_token)));
  }
  if (!outcome.hit_tokens.has_value()) return;
  judged_hits_.Increment(outcome.prompt_tokens);
  const int missed = outcome.predicted_hit_tokens - *outcome.hit_tokens;
  overpredicted_hits_.Increment(std::max(0, missed));
  underpredicted_hits_.Increment(std::max(0, -missed));
}

void RouterMetrics::HitsPredicted(double wrong_share, bool alarm) {
  hit_error_.Set(wrong_share);
  hit_alarm_.Set(alarm ? 1 : 0);
}

void RouterMetrics::FirstToken(RequestId request, absl::Duration since_submit) {
  ttft_.Observe(absl::ToDoubleSeconds(since_submit));
  native_ttft_.Observe(absl::ToDoubleSeconds(since_submit));
}

void RouterMetrics::TokensDelivered(RequestId request, int tokens,
                                    absl::Duration since_last_frame) {
  if (tokens <= 0) return;
  double each = absl::ToDoubleSeconds(since_last_frame) / tokens;
  for (int i = 0; i < tokens; ++i) {
    itl_.Observe(each);
    native_itl_.Observe(each);
  }
}

void RouterMetrics::RequestFinished(const RequestOutcome& outcome) {
  generated_tokens_.Increment(outcome.delivered_tokens);
  requests_.Add(With({{"outcome", std::string(OutcomeName(outcome.status))}}))
      .Increment();
  e2e_.Observe(absl::ToDoubleSeconds(outcome.elapsed));
  if (!outcome.status.ok()) return;
  cached_tokens_.Increment(outcome.usage.cached_tokens);
  success_.Add(With({{"finished_reason", FinishName(outcome.finish)}}))
      .Increment();
}

void RouterMetrics::InFlight(int running, int queued) {
  running_.Set(running);
  queued_.Set(queued);
}

void RouterMetrics::WorkerRegistered(const WorkerInfo& info) {
  worker_up_.Add(With({{"worker", info.key.name}})).Set(0);
}

void RouterMetrics::WorkerHealthChanged(const WorkerKey& worker,
                                        WorkerHealth health) {
  worker_up_.Add(With({{"worker", worker.name}}))
      .Set(health == WorkerHealth::kReady ? 1 : 0);
}

void RouterMetrics::WorkerLost(const WorkerKey& worker,
                               const absl::Status& why) {
  worker_up_.Add(With({{"worker", worker.name}})).Set(0);
}

void RouterMetrics::WorkerVetoed(LegKind leg, const WorkerKey& worker,
                                 bool vetoed) {
  worker_vetoed_
      .Add(With({{"worker", worker.name},
                 {"leg", leg == LegKind::kPrefill ? "prefill" : "decode"}}))
      .Set(vetoed ? 1 : 0);
}

void RouterMetrics::CacheResyncAsked(const WorkerKey& worker) {
  resyncs_.Increment();
}

}  // namespace penstock
