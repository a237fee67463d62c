#include "common/cost/step_times.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {
namespace {

// Standard deviations. Of a factor after the first step, which sets all of them
// alike: a share of it.
constexpr double kGuessSpread = 3;
// Of one step's time, as a share of it.
constexpr double kStepSpread = 0.2;
// How far a factor may move on its own from one step to the next, and how
// uncertain that may make it in the end, as shares of it.
constexpr double kDrift = 0.04;
constexpr double kMostDoubt = 0.5;
// Steps after which a time far from what was predicted is taken for an
// accident, and how far it then counts.
constexpr int kLearned = 8;
constexpr double kMostSurprise = 1.5;
// So many accidents in a row are none.
constexpr int kAccidents = 4;
// A factor never gets below, so that it can come back.
constexpr double kLeastFactor = 1e-6;

}  // namespace

void StepSize::Add(int count, int behind, int samples_of_them) {
  rows += count;
  pairs += AttentionPairs(count, behind);
  samples += samples_of_them;
}

void StepSize::Remove(int count, int behind, int samples_of_them) {
  rows -= count;
  pairs -= AttentionPairs(count, behind);
  samples -= samples_of_them;
}

StepTimes::StepTimes(const CostCoefficients& guess)
    : guess_{absl::ToDoubleSeconds(guess.step_fixed),
             absl::ToDoubleSeconds(guess.prefill_token),
             absl::ToDoubleSeconds(guess.prefill_pair),
             absl::ToDoubleSeconds(guess.step_sequence)} {
  factors_.fill(1);
}

StepTimes::Terms StepTimes::TermsOf(const StepSize& work) const {
  return {guess_[0], guess_[1] * static_cast<double>(work.rows),
          guess_[2] * static_cast<double>(work.pairs),
          guess_[3] * static_cast<double>(work.samples)};
}

double StepTimes::Sum(const Terms& terms) const {
  double sum = 0;
  for (int i = 0; i < kTerms; ++i) sum += factors_[i] * terms[i];
  return sum;
}

absl::Duration StepTimes::Predict(const StepSize& work) const {
  return absl::Seconds(Sum(TermsOf(work)));
}

StepCosts StepTimes::costs() const {
  if (observed_ == 0) return {};
  Terms seconds = guess_;
  for (int i = 0; i < kTerms; ++i) seconds[i] *= factors_[i];
  return {.step = seconds[0],
          .row = seconds[1],
          .pair = seconds[2],
          .sample = seconds[3]};
}

void StepTimes::Observe(const StepSize& work, absl::Duration took) {
  const Terms terms = TermsOf(work);
  const double predicted = Sum(terms);
  double seconds = absl::ToDoubleSeconds(took);
  if (work.rows <= 0 || seconds <= 0 || predicted <= 0) return;
  if (observed_ == 0) {
    for (double& factor : factors_) factor *= seconds / predicted;
    Doubt();
    return;
  }
  const double counted =
      std::clamp(seconds, predicted / kMostSurprise, predicted * kMostSurprise);
  accidents_ = counted == seconds ? 0 : accidents_ + 1;
  if (accidents_ >= kAccidents) Doubt();
  if (observed_ >= kLearned) {
    seconds = counted;
  } else {
    ++observed_;
  }
  const double spread = kStepSpread * seconds;
  Update(terms, seconds - predicted, spread * spread);
}

void StepTimes::Doubt() {
  for (int i = 0; i < kTerms; ++i) {
    const double doubt = kGuessSpread * factors_[i];
    covariance_[i][i] += doubt * doubt;
  }
  observed_ = 1;
  accidents_ = 0;
}

void StepTimes::Update(const Terms& terms, double error, double noise) {
  Terms spread = {};  // covariance times terms
  double innovation = noise;
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) {
      spread[i] += covariance_[i][j] * terms[j];
    }
    innovation += terms[i] * spread[i];
  }
  CHECK(innovation > 0);
  for (int i = 0; i < kTerms; ++i) {
    factors_[i] =
        std::max(kLeastFactor, factors_[i] + spread[i] / innovation * error);
    for (int j = 0; j < kTerms; ++j) {
      covariance_[i][j] -= spread[i] * spread[j] / innovation;
    }
  }
  for (int i = 0; i < kTerms; ++i) {
    const double drift = kDrift * factors_[i];
    const double most = kMostDoubt * factors_[i];
    if (covariance_[i][i] < most * most) covariance_[i][i] += drift * drift;
  }
}

}  // namespace penstock
