#pragma once

#include <string>

#include "common/engine/engine_probe.h"
#include "common/peer/worker_report.h"
#include "kvstore/core/block_pool.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace penstock {

// A worker's probes as Prometheus metrics: penstock_* and the vllm:* names that
// existing dashboards and gateways read. Labels are bounded: roles, states,
// transports and reasons, never ids. Called on the engine thread; scraped from
// any.
class WorkerMetrics : public EngineProbe, public HandoffProbe {
 public:
  struct Options {
    std::string model;  // label model_name
    std::string role;   // prefill, decode or both
  };
  // The registry outlives the metrics.
  WorkerMetrics(const Options& options, prometheus::Registry& registry);

  // Once, when the worker knows how much memory it took.
  void Loaded(int total_blocks);

  // Gauges, from time to time.
  void Observe(const WorkerLoad& load, const BlockCounts& blocks);

 private:
  void StepFinished(int prefill_rows, int decode_rows,
                    absl::Duration took) override;
  void SequenceQueued(absl::Duration waited) override;
  void PrefixLooked(int prompt_tokens, int cached_tokens) override;
  void TokenMade() override;
  void Preempted() override;
  void WaitedForCores(absl::Duration waited) override;
  void BlocksCopied(int count) override;
  void TierLooked(int wanted, int held, int fetched) override;
  void PageFetched(uint64_t bytes) override;
  void PageNotFetched(absl::StatusCode why) override;
  void PageStored(uint64_t bytes) override;
  void PageNotStored(absl::StatusCode why) override;

  void TransferEnded(Direction direction, absl::string_view transport,
                     absl::string_view reason, uint64_t bytes,
                     absl::Duration took) override;
  void ChunkNacked(absl::string_view reason) override;
  void PageRefused(absl::string_view reason) override;
  void LegStarted(bool prefill) override;
  void LegEnded(bool prefill, absl::string_view reason) override;

  prometheus::Labels With(prometheus::Labels more) const;

  prometheus::Registry& registry_;
  prometheus::Labels labels_;
  prometheus::Gauge& running_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& kv_usage_;
  prometheus::Gauge& queued_tokens_;
  prometheus::Family<prometheus::Gauge>& blocks_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& generated_tokens_;
  prometheus::Counter& prefix_queries_;
  prometheus::Counter& prefix_hits_;
  prometheus::Counter& preemptions_;
  prometheus::Counter& core_waits_;
  prometheus::Counter& copies_;
  prometheus::Counter& tier_queries_;
  prometheus::Counter& tier_hits_;
  prometheus::Counter& tier_bytes_fetched_;
  prometheus::Counter& tier_bytes_stored_;
  prometheus::Family<prometheus::Counter>& tier_failures_;
  prometheus::Counter& prefill_rows_;
  prometheus::Counter& decode_rows_;
  prometheus::Counter& nacks_;
  prometheus::Counter& refusals_;
  prometheus::Histogram& step_seconds_;
  prometheus::Histogram& queue_seconds_;
  prometheus::Family<prometheus::Counter>& legs_;
  prometheus::Family<prometheus::Histogram>& transfer_seconds_;
  prometheus::Family<prometheus::Counter>& transfer_bytes_;
  prometheus::Family<prometheus::Counter>& transfer_failures_;
};

}  // namespace penstock
