#pragma once

#include <string>

#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "router/core/router_probe.h"

namespace penstock {

// The router's probe as Prometheus metrics: penstock_router_* and the vllm:*
// names of what only the router sees end to end. Labels are bounded: reasons,
// outcomes and worker names, never request ids. Called on the router's loop
// thread; scraped from any.
class RouterMetrics : public RouterProbe {
 public:
  // The registry outlives the metrics.
  RouterMetrics(const std::string& model, prometheus::Registry& registry);

  void RequestStarted(RequestId request, int prompt_tokens) override;
  void RequestRejected(ErrorReason reason) override;
  void RequestBegan(RequestId request, absl::Duration waited) override;
  void RequestPlaced(const PlacementFacts& placement) override;
  void RequestRetried(RequestId request, ErrorReason reason) override;
  void DecisionJudged(const DecisionOutcome& outcome) override;
  void HitsPredicted(double wrong_share, bool alarm) override;
  void FirstToken(RequestId request, absl::Duration since_submit) override;
  void TokensDelivered(RequestId request, int tokens,
                       absl::Duration since_last_frame) override;
  void RequestFinished(const RequestOutcome& outcome) override;
  void InFlight(int running, int queued) override;
  void WorkerRegistered(const WorkerInfo& info) override;
  void WorkerHealthChanged(const WorkerKey& worker,
                           WorkerHealth health) override;
  void WorkerLost(const WorkerKey& worker, const absl::Status& why) override;
  void WorkerVetoed(LegKind leg, const WorkerKey& worker, bool vetoed) override;
  void CacheResyncAsked(const WorkerKey& worker) override;

 private:
  prometheus::Labels With(prometheus::Labels more) const;

  prometheus::Labels labels_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& rejected_;
  prometheus::Family<prometheus::Counter>& retries_;
  prometheus::Family<prometheus::Counter>& decisions_;
  prometheus::Family<prometheus::Counter>& success_;
  prometheus::Family<prometheus::Gauge>& worker_up_;
  prometheus::Family<prometheus::Gauge>& worker_vetoed_;
  prometheus::Gauge& running_;
  prometheus::Gauge& queued_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generated_tokens_;
  prometheus::Counter& predicted_hits_;
  prometheus::Counter& cached_tokens_;
  prometheus::Counter& resyncs_;
  prometheus::Counter& judged_hits_;
  prometheus::Counter& overpredicted_hits_;
  prometheus::Counter& underpredicted_hits_;
  prometheus::Gauge& hit_error_;
  prometheus::Gauge& hit_alarm_;
  prometheus::Histogram& regret_;
  prometheus::Histogram& predicted_ttft_;
  prometheus::Histogram& ttft_error_;
  prometheus::Histogram& ttft_;
  prometheus::Histogram& itl_;
  prometheus::Histogram& e2e_;
  prometheus::Histogram& queue_;
  prometheus::Histogram& native_ttft_;
  prometheus::Histogram& native_itl_;
};

}  // namespace penstock
