#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/cost/cost_model.h"
#include "router/core/routing_policy.h"

namespace penstock {

// The default policy: the pair of workers whose predicted time for the request,
// work ahead included, is least. Decode is chosen first. A cached prefix counts
// as the time it saves, so a busy owner loses to an idle stranger exactly when
// waiting costs more than computing. Ties are broken at random.
//
// Only ready workers with room are considered, suspect ones only when there is
// no other. A pair needs equal layout, content and numerics, and a transport
// that both have. A worker that keeps the request's KV has a hit of that length
// and room; it may prefill whatever its role, draining or to be avoided, and it
// decodes when it drains if nobody else can.
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
    int uncached_tokens = 0;  // at least 1: the last token is always computed
    bool keeps = false;       // some of it for this request
    absl::Duration time;      // until the worker's part would be done
  };
  // The workers of one role, and why some are not candidates.
  struct Pool {
    std::vector<Candidate> open;
    int ready = 0;
    int large_enough = 0;  // of the ready ones
  };

  // What one worker has of the request's KV, in tokens.
  struct Holding {
    int cached = 0;  // kept included
    int kept = 0;
  };

  // One for each worker of the view.
  static std::vector<Holding> Holdings(const RequestFacts& request,
                                       const ClusterView& view);
  Pool DecodePool(const RequestFacts& request, const ClusterView& view,
                  absl::Span<const Holding> holdings) const;
  // Least time first.
  Pool PrefillPool(const RequestFacts& request, const ClusterView& view,
                   absl::Span<const Holding> holdings) const;
  // Of the workers that `admits` accepts by index. `generated`: tokens that
  // need room beside the prompt's, in each of `beams` answers at once.
  template <typename Admits>
  Pool PoolOf(Admits admits, int generated, int beams,
              const RequestFacts& request, const ClusterView& view,
              absl::Span<const Holding> holdings) const;

  int Steps(const RequestFacts& request) const;
  absl::Duration WorkAhead(const WorkerView& worker) const;
  absl::Duration DecodeTime(const RequestFacts& request,
                            const WorkerView& worker) const;
  // Getting the prompt's KV to `decode`: by `prefill`, or by itself if null.
  absl::Duration PromptTime(const Candidate& decode,
                            const Candidate* prefill) const;

  Options options_;
  CostModel cost_;
};

}  // namespace penstock
