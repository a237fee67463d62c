#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// Turns the logits of one row into a token and its log-probabilities. The
// result is a pure function of the arguments. Holds scratch memory only: use
// one sampler a thread.
//
// Temperature 0 takes the highest logit, the lowest id on a tie. Otherwise
// logits are divided by the temperature, the best top_k are kept, of those the
// shortest run whose share reaches top_p, and one is drawn by
// SampleUniform(seed, sample, position). "Best" is always the canonical order:
// descending logit, ascending id on a tie.
//
// Log-probabilities, where asked for, are natural logarithms of the softmax at
// temperature 1 over all logits, whatever the parameters keep.
class Sampler {
 public:
  // Preconditions: `logits` [vocab] is not empty; row.params passed
  // Validate(GenerateRequest). INTERNAL, naming the row and the token id: a
  // logit is NaN or infinite.
  absl::StatusOr<SampledToken> Sample(absl::Span<const float> logits,
                                      const SampleRow& row);

  // The log-probability of row.token and of the best row.best tokens: the same
  // bits that a draw of that token reports. Errors as above.
  absl::StatusOr<TokenLogprobs> Score(absl::Span<const float> logits,
                                      const ScoreRow& row);

 private:
  // Starts the canonical order over `logits`, sorted only as far as it is
  // asked for; the first step sorts what lies within `band` of the maximum.
  void StartOrder(absl::Span<const float> logits, float max, double band);
  // True, and order_[n] is valid, when the row has more than n tokens.
  bool Reach(size_t n);
  void SortNextBand();

  TokenId Draw(const SampleRow& row);
  // Sum of the weights of the best `kept` tokens; all of them when kept is the
  // vocabulary.
  double Mass(double temperature, size_t kept);
  // Natural logarithm of the sum of exp(logit - max).
  TokenLogprobs Logprobs(TokenId token, int best);

  absl::Span<const float> logits_;
  float max_ = 0;
  double sorted_to_ = 0;  // logits less than this below the maximum are sorted
  double band_ = 0;       // width of the next band
  std::vector<uint64_t> order_;  // keys of the sorted tokens, best first
};

}  // namespace penstock
