#include "decode_worker/core/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock {

BeamSearch::Step BeamSearch::Advance(
    absl::Span<const Beam> beams,
    const std::function<Fate(const Continuation&)>& fate) const {
  std::vector<Continuation> all;
  for (size_t parent = 0; parent < beams.size(); ++parent) {
    const auto& best = *beams[parent].best;
    for (size_t choice = 0; choice < best.size(); ++choice) {
      all.push_back({static_cast<int>(parent), static_cast<int>(choice),
                     beams[parent].sum + best[choice].second});
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Continuation& a, const Continuation& b) {
                     return a.sum > b.sum;
                   });
  const size_t width = params_.width;
  Step step;
  size_t rank = 0;
  for (const Continuation& next : all) {
    if (step.live.size() == width) break;
    switch (fate(next)) {
      case Fate::kBarred:
        continue;
      case Fate::kEnds:
        if (rank < width) step.ended.push_back(next);
        break;
      case Fate::kLives:
        step.live.push_back(next);
        break;
    }
    ++rank;
  }
  return step;
}

double BeamSearch::Score(double sum, int length) const {
  return sum / std::pow(length, double{params_.length_penalty});
}

void BeamSearch::Keep(KeptAnswer answer, double sum) {
  answer.score = Score(sum, static_cast<int>(answer.tokens.size()));
  auto at = std::upper_bound(kept_.begin(), kept_.end(), answer.score,
                             [](double score, const KeptAnswer& other) {
                               return score > other.score;
                             });
  kept_.insert(at, std::move(answer));
  if (kept_.size() > static_cast<size_t>(params_.width)) kept_.pop_back();
}

bool BeamSearch::Settled(double best, int length) const {
  return kept_.size() == static_cast<size_t>(params_.width) &&
         kept_.back().score >= Score(best, length);
}

std::vector<KeptAnswer> BeamSearch::Take(int n) {
  if (kept_.size() > static_cast<size_t>(n)) kept_.resize(n);
  return std::move(kept_);
}

}  // namespace penstock
