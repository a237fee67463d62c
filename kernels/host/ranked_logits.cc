#include "kernels/host/ranked_logits.h"

#include <algorithm>
#include <bit>

namespace penstock {
namespace {

// Ascending keys are the canonical order: the logit's bits made monotonic and
// inverted, then the id.
uint64_t OrderKey(float logit, size_t id) {
  // + 0.0f makes -0 equal to 0, as it compares.
  uint32_t bits = std::bit_cast<uint32_t>(logit + 0.0f);
  uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t{~ascending} << 32 | id;
}

}  // namespace

void RankedLogits::Start(absl::Span<const float> logits, float max,
                         size_t count, double band) {
  logits_ = logits;
  max_ = max;
  count_ = count;
  sorted_to_ = 0;
  band_ = band;
  order_.clear();
}

bool RankedLogits::Reach(size_t n) {
  if (n >= count_) return false;
  while (order_.size() <= n) SortNextBand();
  return true;
}

// Bands double in width, so that a flat row costs few passes and a peaked one
// sorts few tokens.
void RankedLogits::SortNextBand() {
  double end = sorted_to_ + band_;
  const size_t begin = order_.size();
  const float* logits = logits_.data();
  for (size_t id = 0; id < logits_.size(); ++id) {
    double below = double{max_} - double{logits[id]};
    if (below >= sorted_to_ && below < end) {
      order_.push_back(OrderKey(logits[id], id));
    }
  }
  std::sort(order_.begin() + begin, order_.end());
  sorted_to_ = end;
  band_ *= 2;
}

}  // namespace penstock
