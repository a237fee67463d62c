#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

// What a cost model is made of: straight lines, measured on the machine and
// model that serve. The defaults fit a 135M model on two CPU cores; only their
// ratios matter for choosing between like workers.
struct CostCoefficients {
  absl::Duration prefill_fixed = absl::Milliseconds(2);  // for each prompt
  absl::Duration prefill_token = absl::Microseconds(700);
  // For each pair of a computed token and a token before it (attention).
  absl::Duration prefill_pair = absl::Nanoseconds(100);
  absl::Duration step_fixed = absl::Milliseconds(5);  // reading the weights
  absl::Duration step_sequence = absl::Milliseconds(1);
  absl::Duration step_context_token = absl::Microseconds(1);
  absl::Duration transfer_fixed = absl::Milliseconds(1);
  absl::Duration transfer_mebibyte = absl::Milliseconds(1);
};

// Pairs that attention compares when `tokens` are computed behind `cached`
// others: token i of them looks back at cached + i.
int64_t AttentionPairs(int tokens, int cached);

// Predicts how long work takes. Pure and immutable; safe from any thread.
class CostModel {
 public:
  // INVALID_ARGUMENT names a coefficient that is negative or infinite.
  static absl::StatusOr<CostModel> Create(const CostCoefficients& coefficients);

  // Computing `tokens` prompt tokens behind `cached` others. 0 tokens cost
  // nothing. Precondition: neither is negative.
  absl::Duration Prefill(int tokens, int cached) const;
  // The same in seconds, to compare thousands of workers by.
  double PrefillSeconds(int tokens, int cached) const;

  // One decode step of `sequences` whose contexts sum to `context_tokens`.
  absl::Duration DecodeStep(int sequences, int64_t context_tokens) const;

  // What one more sequence adds to each of `steps` decode steps, its context
  // growing from `context` tokens.
  absl::Duration DecodeShare(int steps, int context) const;

  // Moving KV pages; 0 bytes cost nothing.
  absl::Duration Transfer(uint64_t bytes) const;

 private:
  explicit CostModel(const CostCoefficients& c);
  CostCoefficients c_;
  double fixed_seconds_, token_seconds_, pair_seconds_;  // of a prefill
};

}  // namespace penstock
