#pragma once

#include <vector>

#include "absl/time/time.h"
#include "common/cost/cost_model.h"
#include "router/core/routing_policy.h"

namespace penstock {

// The default policy: the pair of workers whose predicted time for the request,
// work ahead included, is least. Decode is chosen first. A cached prefix counts
// as the time it saves, so a busy owner loses to an idle stranger exactly when
// waiting costs more than computing. Ties are broken at random.
class LeastTimePolicy : public RoutingPolicy {
 public:
  struct Options {
    // Prompts with fewer uncached tokens than this are prefilled by decode.
    int local_prefill_tokens = 16;
    // A worker with this many requests for each sequence that it can run is
    // full; more wait in the router, where the order can still change.
    int requests_per_sequence = 2;
    // Requests are taken to generate this much, unless they ask for less.
    int expected_tokens = 128;
    int64_t kv_bytes_per_token = 0;
    absl::Duration retry_after = absl::Seconds(1);  // advice when all are full
  };

  LeastTimePolicy(const Options& options, const CostModel& cost)
      : options_(options), cost_(cost) {}

  absl::StatusOr<Placement> Place(const RequestFacts& request,
                                  const ClusterView& view,
                                  Random& random) const override;

 private:
  struct Candidate {
    const WorkerView* worker = nullptr;
    int cached_tokens = 0;
    absl::Duration work_ahead;
  };

  absl::StatusOr<std::vector<Candidate>> Candidates(
      const RequestFacts& request, const ClusterView& view,
      absl::Span<const int> cached_blocks, bool decode) const;
  absl::Duration WorkAhead(const WorkerView& worker) const;
  bool IsFull(const WorkerView& worker) const;
  absl::Duration DecodeTime(const RequestFacts& request,
                            const Candidate& candidate) const;

  Options options_;
  CostModel cost_;
};

}  // namespace penstock
