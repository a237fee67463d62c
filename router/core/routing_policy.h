#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/random.h"
#include "router/core/cluster_view.h"
#include "router/core/decision_record.h"

namespace penstock {

// A worker that holds the KV of leading tokens for this request's next attempt,
// whatever the index says. It may serve as the prefill of a handoff even when
// it drains or has no prefill role: it only has the rest to compute.
struct KeptPrefix {
  WorkerKey worker;
  int tokens = 0;
};

// What placing a request depends on.
struct RequestFacts {
  uint64_t session = 0;   // a number of the client's session; 0: none
  int prompt_tokens = 0;  // on a later attempt: with the delivered ones
  int max_tokens = 0;     // that are still to come
  absl::Span<const BlockHash> chain;  // of the full blocks of those tokens
  absl::Span<const KeptPrefix> kept;
  // Workers that a failed attempt wants left out.
  absl::Span<const std::string> avoid;
  int answers = 1;            // over one prompt's blocks
  bool beams = false;         // all of them at once
  bool decode_alone = false;  // there must be no prefill leg
  bool record = false;        // say whom else there was to choose from
};

// A worker chosen for one leg, and what the leg is predicted to cost it.
struct LegPlacement {
  WorkerKey worker;
  int cached_tokens = 0;  // prompt tokens believed cached there
  LoadShare load;
};

struct Placement {
  LegPlacement decode;
  std::optional<LegPlacement> prefill;  // none: decode prefills by itself
  absl::Duration first_token;           // predicted, from now
  std::shared_ptr<const DecisionRecord> record;  // when asked for
};

// Chooses workers. Pure: equal arguments and equal draws give equal answers.
class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;

  // Errors, with the reason attached:
  //   kNoWorkers   no ready worker for a role
  //   kQueueFull   every ready worker is full; worth another try later
  //   kKvTooSmall  no ready worker could ever hold the request
  virtual absl::StatusOr<Placement> Place(const RequestFacts& request,
                                          const ClusterView& view,
                                          Random& random) const = 0;
};

}  // namespace penstock
