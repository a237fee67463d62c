#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "kernels/host/ranked_logits.h"

namespace penstock {

// The nearest float that is finite: a logit stays a number whatever a stage
// adds to it.
float FiniteLogit(double logit);

// The tokens that may still be drawn, as the stages of a sampler pass them on.
// In the canonical order they are always one run, since every stage that drops
// tokens drops the best or the worst of them. Scratch memory of one thread.
//
// `n` counts the candidates from the best, which is 0.
class Candidates {
 public:
  // Begins with every token of `logits` [vocab], which outlive the use, are
  // finite, and the highest of which is `max`. `band` as in RankedLogits.
  void Start(absl::Span<const float> logits, float max, double band);

  // Logits that a stage may change, and exclude by minus infinity, which stays
  // minus infinity. Tokens dropped so far are minus infinity, the temperature
  // so far is divided out. Valid until the next call of another method.
  absl::Span<float> Edit();

  size_t size();
  // True, and candidate n may be read, when there are more than n.
  bool Reach(size_t n);
  TokenId Id(size_t n) const { return ranked_.Id(first_ + n); }
  double Logit(size_t n) const { return ranked_.Logit(first_ + n); }
  // How far below the best candidate, after the temperature: 0 or more.
  // Precondition: Reach(n).
  double Depth(size_t n) const { return (top_ - Logit(n)) / temperature_; }
  // Share of candidate n, up to the factor 1 / Mass(): exp(-Depth(n)).
  double Weight(size_t n) const;
  // A candidate at this depth can never be drawn; nor any after it.
  static bool IsNothing(double weight);
  double Mass();

  // True: nothing was dropped, so that whole-row sums hold.
  bool whole();
  // All logits, for whole-row sums; excluded tokens are minus infinity.
  absl::Span<const float> logits() const { return ranked_.logits(); }
  float max() const { return ranked_.max(); }
  double temperature() const { return temperature_; }

  // The highest logit, the lowest id on a tie.
  TokenId Highest();
  // The order of the logits as Start got them; null when they were changed.
  RankedLogits* unedited() { return owned_ ? nullptr : &ranked_; }

  // Precondition: 0 < n <= size().
  void KeepFirst(size_t n);
  // Precondition: n < size().
  void DropFirst(size_t n);
  // Precondition: temperature > 0.
  void Divide(double temperature);

 private:
  // Ranks what was edited.
  void Settle() {
    if (edited_) Rank();
  }
  void Rank();

  RankedLogits ranked_;
  std::vector<float> own_;  // [vocab] when a stage changed logits
  bool owned_ = false;      // ranked_ is over own_
  bool edited_ = false;     // own_ is to be ranked again
  double band_ = 0;
  double temperature_ = 1;
  size_t first_ = 0, last_ = 0;  // candidates, in places of ranked_
  double top_ = 0;               // logit of candidate 0
  std::optional<double> mass_;
};

}  // namespace penstock
