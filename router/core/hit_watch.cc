#include "router/core/hit_watch.h"

#include <cstdlib>
#include <utility>

namespace penstock {

double HitWatch::error() const {
  const int64_t prompt = halves_[0].prompt_tokens + halves_[1].prompt_tokens;
  const int64_t wrong = halves_[0].wrong_tokens + halves_[1].wrong_tokens;
  return prompt == 0 ? 0
                     : static_cast<double>(wrong) / static_cast<double>(prompt);
}

bool HitWatch::Note(int prompt_tokens, int predicted, int actual) {
  if (halves_[0].placements >= kWindow / 2) {
    halves_[1] = std::exchange(halves_[0], Half{});
  }
  ++halves_[0].placements;
  halves_[0].prompt_tokens += prompt_tokens;
  halves_[0].wrong_tokens += std::abs(predicted - actual);
  if (halves_[0].placements + halves_[1].placements < kWindow / 2) return false;
  const bool before = alarm_;
  alarm_ = error() > (alarm_ ? kFall : kRise);
  return alarm_ != before;
}

}  // namespace penstock
