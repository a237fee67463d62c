#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/simulator/trace/duration_histogram.h"
#include "tools/simulator/trace/trace_cluster.h"
#include "tools/trace/trace_file.h"

namespace penstock {

// Replays a trace through a simulated cluster.
struct TraceRunOptions {
  CostPreset preset;
  int prefill_workers = 1;
  int decode_workers = 1;
  // KV blocks of each worker; 0: so many that nothing is ever evicted.
  int64_t pool_blocks = 0;
  // In all: the trace is played again, with other tokens, until there are so
  // many. 0: one pass.
  int64_t requests = 0;
  double arrival_scale = 1;  // times as fast as it was recorded
  // Above 0, arrival times are ignored: so many requests are always under way.
  int64_t concurrency = 0;
  absl::Duration timeout = absl::Minutes(10);
  // What a request has to meet to count as good: the time to its first token
  // and the mean time between its tokens.
  absl::Duration ttft_slo = absl::Seconds(10);
  absl::Duration itl_slo = absl::Milliseconds(100);
  PolicyOptions policy;
  uint64_t seed = 1;
};

// Durations are virtual, from a request's arrival at the router.
struct TraceReport {
  int64_t requests = 0, finished = 0, good = 0;
  // By error; requests that the router did not take are "refused ...".
  std::map<std::string, int64_t> failures;
  absl::Duration elapsed;  // from the first arrival to the last end
  int64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  // Of finished requests: full KV blocks of prompts, and runs of
  // kTraceBlockTokens; and how many of each came from a prefix cache whole.
  int64_t blocks = 0, cached_blocks = 0;
  int64_t runs = 0, cached_runs = 0;
  DurationHistogram ttft, itl, mean_itl, e2e;
  uint64_t bytes_moved = 0;
  int64_t events = 0, steps = 0;
  // Of every token's time and value: equal runs have equal digests.
  uint64_t digest = 0;

  double goodput() const;  // requests a second
};

// INVALID_ARGUMENT names an option out of range, INTERNAL a count in the
// cluster that does not add up at the end.
absl::StatusOr<TraceReport> RunTrace(const std::vector<TraceRequest>& trace,
                                     const TraceRunOptions& options);

// Would at least such a share of RunTrace's requests be good? Runs only until
// that is certain. Errors as RunTrace.
absl::StatusOr<bool> TraceMeets(double share,
                                const std::vector<TraceRequest>& trace,
                                const TraceRunOptions& options);

}  // namespace penstock
