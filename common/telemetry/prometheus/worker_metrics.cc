#include "common/telemetry/prometheus/worker_metrics.h"

#include <algorithm>
#include <utility>

#include "common/model/kv_layout.h"
#include "common/telemetry/prometheus/latency_buckets.h"
#include "common/telemetry/prometheus/metric_makers.h"

namespace penstock {
namespace {

using prometheus::Labels;
using prometheus::Registry;

Labels Merge(Labels labels, const Labels& more) {
  labels.insert(more.begin(), more.end());
  return labels;
}

const char* DirectionName(HandoffProbe::Direction direction) {
  return direction == HandoffProbe::Direction::kOut ? "out" : "in";
}

const char* TierReason(absl::StatusCode why) {
  switch (why) {
    case absl::StatusCode::kDataLoss:
      return "bad";
    case absl::StatusCode::kNotFound:
      return "gone";
    case absl::StatusCode::kDeadlineExceeded:
      return "late";
    case absl::StatusCode::kCancelled:
      return "cancelled";
    default:
      return "unavailable";
  }
}

}  // namespace

WorkerMetrics::WorkerMetrics(const Options& options, Registry& registry)
    : registry_(registry),
      labels_({{"model_name", options.model},
               {"engine", "0"},
               {"role", options.role}}),
      running_(Gauge(registry, labels_, "vllm:num_requests_running",
                     "Sequences in the batch")),
      waiting_(Gauge(registry, labels_, "vllm:num_requests_waiting",
                     "Requests that wait for blocks or a place in the batch")),
      kv_usage_(Gauge(registry, labels_, "vllm:kv_cache_usage_perc",
                      "Share of KV blocks in use, 0 to 1")),
      queued_tokens_(Gauge(registry, labels_, "penstock_worker_queued_tokens",
                           "Prompt tokens not computed yet")),
      blocks_(Gauges(registry, "penstock_blocks",
                     "KV blocks by state; the states sum to the pool")),
      prompt_tokens_(Counter(registry, labels_, "vllm:prompt_tokens_total",
                             "Prompt tokens of admitted requests")),
      generated_tokens_(Counter(registry, labels_,
                                "vllm:generation_tokens_total",
                                "Tokens generated here")),
      prefix_queries_(Counter(registry, labels_,
                              "vllm:prefix_cache_queries_total",
                              "Prompt tokens looked up in the prefix cache")),
      prefix_hits_(Counter(registry, labels_, "vllm:prefix_cache_hits_total",
                           "Prompt tokens found in the prefix cache")),
      preemptions_(Counter(registry, labels_, "vllm:num_preemptions_total",
                           "Sequences that gave their blocks up")),
      core_waits_(Counter(registry, labels_,
                          "penstock_worker_core_wait_seconds_total",
                          "Time that answers left the cores to prompts of "
                          "other workers of the host")),
      copies_(Counter(registry, labels_, "penstock_kv_blocks_copied_total",
                      "Shared KV blocks copied before an answer wrote into "
                      "them")),
      tier_queries_(Counter(registry, labels_, "penstock_kv_tier_queries_total",
                            "KV blocks looked up below the pool")),
      tier_hits_(Counter(registry, labels_, "penstock_kv_tier_hits_total",
                         "KV blocks found there")),
      tier_bytes_fetched_(Counter(registry, labels_,
                                  "penstock_kv_tier_fetched_bytes_total",
                                  "KV bytes fetched from below the pool, "
                                  "verified")),
      tier_bytes_stored_(Counter(registry, labels_,
                                 "penstock_kv_tier_stored_bytes_total",
                                 "KV bytes stored below the pool")),
      tier_failures_(Counters(registry, "penstock_kv_tier_failures_total",
                              "KV blocks that could not be fetched (and were "
                              "computed) or stored, by reason; bad: failed "
                              "verification")),
      prefill_rows_(Counter(registry, labels_,
                            "penstock_worker_prefill_rows_total",
                            "Rows computed in prefill chunks")),
      decode_rows_(Counter(registry, labels_,
                           "penstock_worker_decode_rows_total",
                           "Rows computed one at a time")),
      nacks_(Counter(registry, labels_, "penstock_kv_transfer_retries_total",
                     "Chunks that had to be sent again")),
      refusals_(Counter(registry, labels_, "penstock_kv_pages_refused_total",
                        "Arrived pages that failed a check")),
      step_seconds_(Histogram(registry, labels_, "penstock_worker_step_seconds",
                              "Time of a forward pass", InterTokenBuckets())),
      queue_seconds_(
          Histogram(registry, labels_, "vllm:request_queue_time_seconds",
                    "Time from arrival to the first step", RequestBuckets())),
      legs_(Counters(registry, "penstock_worker_legs_total",
                     "Legs served, by outcome")),
      transfer_seconds_(prometheus::BuildHistogram()
                            .Name("penstock_kv_transfer_seconds")
                            .Help("Time of a KV handoff")
                            .Register(registry)),
      transfer_bytes_(Counters(registry, "penstock_kv_transfer_bytes_total",
                               "KV bytes handed off")),
      transfer_failures_(Counters(registry,
                                  "penstock_kv_transfer_failures_total",
                                  "Handoffs that failed, by reason")) {}

void WorkerMetrics::Loaded(int total_blocks) {
  Gauges(registry_, "vllm:cache_config_info",
         "Always 1; the labels say how the KV cache is laid out")
      .Add(With({{"block_size", std::to_string(kBlockTokens)},
                 {"num_gpu_blocks", std::to_string(total_blocks)}}))
      .Set(1);
}

Labels WorkerMetrics::With(Labels more) const { return Merge(labels_, more); }

void WorkerMetrics::Observe(const WorkerLoad& load, const BlockCounts& blocks) {
  running_.Set(load.active_requests);
  waiting_.Set(load.queued_requests);
  queued_tokens_.Set(load.queued_tokens);
  int used = blocks.active + blocks.in_transfer + blocks.quarantined;
  kv_usage_.Set(static_cast<double>(used) / std::max(1, blocks.total()));
  const std::pair<const char*, int> states[] = {
      {"quarantined", blocks.quarantined},
      {"in_transfer", blocks.in_transfer},
      {"active", blocks.active},
      {"cached", blocks.cached},
      {"free", blocks.free}};
  for (const auto& [state, count] : states) {
    blocks_.Add(With({{"state", state}})).Set(count);
  }
}

void WorkerMetrics::StepFinished(int prefill_rows, int decode_rows,
                                 absl::Duration took) {
  prefill_rows_.Increment(prefill_rows);
  decode_rows_.Increment(decode_rows);
  step_seconds_.Observe(absl::ToDoubleSeconds(took));
}

void WorkerMetrics::SequenceQueued(absl::Duration waited) {
  queue_seconds_.Observe(absl::ToDoubleSeconds(waited));
}

void WorkerMetrics::PrefixLooked(int prompt_tokens, int cached_tokens) {
  prompt_tokens_.Increment(prompt_tokens);
  prefix_queries_.Increment(prompt_tokens);
  prefix_hits_.Increment(cached_tokens);
}

void WorkerMetrics::TokenMade() { generated_tokens_.Increment(); }

void WorkerMetrics::Preempted() { preemptions_.Increment(); }

void WorkerMetrics::WaitedForCores(absl::Duration waited) {
  core_waits_.Increment(absl::ToDoubleSeconds(waited));
}

void WorkerMetrics::BlocksCopied(int count) { copies_.Increment(count); }

void WorkerMetrics::TierLooked(int wanted, int held, int fetched) {
  tier_queries_.Increment(wanted);
  tier_hits_.Increment(held);
}

void WorkerMetrics::PageFetched(uint64_t bytes) {
  tier_bytes_fetched_.Increment(static_cast<double>(bytes));
}

void WorkerMetrics::PageNotFetched(absl::StatusCode why) {
  tier_failures_.Add(With({{"op", "fetch"}, {"reason", TierReason(why)}}))
      .Increment();
}

void WorkerMetrics::PageStored(uint64_t bytes) {
  tier_bytes_stored_.Increment(static_cast<double>(bytes));
}

void WorkerMetrics::PageNotStored(absl::StatusCode why) {
  tier_failures_.Add(With({{"op", "store"}, {"reason", TierReason(why)}}))
      .Increment();
}

void WorkerMetrics::TransferEnded(Direction direction,
                                  absl::string_view transport,
                                  absl::string_view reason, uint64_t bytes,
                                  absl::Duration took) {
  Labels labels = With({{"direction", DirectionName(direction)},
                        {"transport", std::string(transport)}});
  transfer_seconds_.Add(labels, TransferBuckets())
      .Observe(absl::ToDoubleSeconds(took));
  transfer_bytes_.Add(labels).Increment(static_cast<double>(bytes));
  if (reason != "ok") {
    labels["reason"] = std::string(reason);
    transfer_failures_.Add(labels).Increment();
  }
}

// Reasons of pages are texts from outside: counted, not used as labels.
void WorkerMetrics::ChunkNacked(absl::string_view reason) {
  nacks_.Increment();
}

void WorkerMetrics::PageRefused(absl::string_view reason) {
  refusals_.Increment();
}

void WorkerMetrics::LegStarted(bool prefill) {}

void WorkerMetrics::LegEnded(bool prefill, absl::string_view reason) {
  legs_
      .Add(With({{"leg", prefill ? "prefill" : "decode"},
                 {"outcome", std::string(reason)}}))
      .Increment();
}

}  // namespace penstock
