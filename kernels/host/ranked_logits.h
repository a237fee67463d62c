#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"

namespace penstock {

// Tokens in the canonical order: descending logit, ascending id on a tie.
// Sorted only as far as it is asked for. A token whose logit is minus infinity
// is not there at all. Scratch memory of one thread.
class RankedLogits {
 public:
  // Begins over `logits`, which outlive the use. `max` is the highest of them,
  // `count` how many are finite (the others are minus infinity), `band` how far
  // below the maximum the first step of sorting goes.
  void Start(absl::Span<const float> logits, float max, size_t count,
             double band);

  absl::Span<const float> logits() const { return logits_; }
  float max() const { return max_; }
  size_t size() const { return count_; }

  // True, and place `n` may be read, when there are more than n tokens.
  bool Reach(size_t n);
  TokenId Id(size_t n) const {
    return static_cast<TokenId>(order_[n] & 0xffffffffu);
  }
  double Logit(size_t n) const { return logits_[Id(n)]; }

 private:
  void SortNextBand();

  absl::Span<const float> logits_;
  float max_ = 0;
  size_t count_ = 0;
  double sorted_to_ = 0;  // logits less than this below the maximum are sorted
  double band_ = 0;       // width of the next band
  std::vector<uint64_t> order_;  // keys of the sorted tokens, best first
};

}  // namespace penstock
