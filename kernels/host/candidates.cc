#include "kernels/host/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "kernels/host/exp.h"
#include "kernels/host/row_scans.h"

namespace penstock {

float FiniteLogit(double logit) {
  constexpr double kMax = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(logit, -kMax, kMax));
}
void Candidates::Start(absl::Span<const float> logits, float max, double band) {
  owned_ = edited_ = false;
  band_ = band;
  temperature_ = 1;
  first_ = 0;
  last_ = logits.size();
  top_ = max;
  mass_.reset();
  ranked_.Start(logits, max, logits.size(), band);
}

absl::Span<float> Candidates::Edit() {
  const absl::Span<const float> logits = ranked_.logits();
  if (edited_) return absl::MakeSpan(own_);
  if (!owned_) own_.assign(logits.begin(), logits.end());
  if (!whole()) {
    // The order is over own_ or over what it was copied from.
    std::vector<float> kept(own_.size(), kExcludedLogit);
    for (size_t n = 0; Reach(n); ++n) kept[Id(n)] = own_[Id(n)];
    own_.swap(kept);
  }
  if (temperature_ != 1) {
    for (float& logit : own_) {
      if (logit == kExcludedLogit) continue;
      logit = FiniteLogit(logit / temperature_);
    }
    temperature_ = 1;
  }
  owned_ = edited_ = true;
  return absl::MakeSpan(own_);
}

void Candidates::Rank() {
  edited_ = false;
  const Peak peak = FindPeak(own_);
  first_ = 0;
  last_ = peak.count;
  top_ = peak.max;
  mass_.reset();
  ranked_.Start(own_, peak.max, peak.count, band_);
}

size_t Candidates::size() {
  Settle();
  return last_ - first_;
}

bool Candidates::Reach(size_t n) {
  Settle();
  return n < last_ - first_ && ranked_.Reach(first_ + n);
}

double Candidates::Weight(size_t n) const { return ExpNonPositive(-Depth(n)); }

bool Candidates::IsNothing(double weight) { return weight <= kLeastExp; }

bool Candidates::whole() {
  Settle();
  return first_ == 0 && last_ == ranked_.size();
}

double Candidates::Mass() {
  Settle();
  if (mass_.has_value()) return *mass_;
  if (whole()) {
    mass_ = SumOfWeights(ranked_.logits(), ranked_.max(), temperature_);
    return *mass_;
  }
  double mass = 0;
  for (size_t n = 0; Reach(n); ++n) {
    const double weight = Weight(n);
    if (IsNothing(weight)) break;
    mass += weight;
  }
  mass_ = mass;
  return mass;
}

TokenId Candidates::Highest() {
  Settle();
  const absl::Span<const float> logits = ranked_.logits();
  return static_cast<TokenId>(
      std::find(logits.begin(), logits.end(), ranked_.max()) - logits.begin());
}

void Candidates::KeepFirst(size_t n) {
  CHECK(n > 0 && n <= size());
  if (n == size()) return;
  last_ = first_ + n;
  mass_.reset();
}

void Candidates::DropFirst(size_t n) {
  CHECK(n < size());
  if (n == 0) return;
  first_ += n;
  CHECK(Reach(0));
  top_ = Logit(0);
  mass_.reset();
}

void Candidates::Divide(double temperature) {
  Settle();
  temperature_ *= temperature;
  mass_.reset();
}

}  // namespace penstock
