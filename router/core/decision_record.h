#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/id.h"

namespace penstock {

// A placement that was looked at closer: whom the policy could have chosen, and
// what each was predicted to take. Immutable once made.
struct DecisionRecord {
  struct Candidate {
    std::string worker;
    int hit_tokens = 0;   // of the prompt, believed there
    absl::Duration cost;  // predicted, work ahead included
  };
  struct Leg {
    int candidates = 0;
    std::vector<Candidate> best;  // the cheapest kBest, cheapest first
    Candidate chosen;
  };
  static constexpr int kBest = 4;

  std::string policy;
  Leg decode;                  // until the last token, with its best partner
  std::optional<Leg> prefill;  // until the prompt is computed

  // What the choice was predicted to cost above the cheapest. 0 for a policy
  // that takes the cheapest.
  absl::Duration Regret() const;
};

// A placement and what came of it.
struct DecisionOutcome {
  RequestId request;
  AttemptId attempt;
  std::string prefill;  // empty: decode prefilled by itself
  std::string decode;
  int prompt_tokens = 0;
  int predicted_hit_tokens = 0;
  absl::Duration predicted_first_token;  // from the placement on
  std::optional<int> hit_tokens;         // absent: the attempt failed
  std::optional<absl::Duration> first_token;
  std::shared_ptr<const DecisionRecord> record;  // of sampled ones
};

}  // namespace penstock
