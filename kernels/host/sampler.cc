#include "kernels/host/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/env/random.h"
#include "kernels/host/exp.h"
#include "kernels/host/vector_clones.h"

namespace penstock {
namespace {

// Independent partial results, so that the compiler can use vector registers
// without changing the order of any sum.
constexpr size_t kLanes = 16;
// The part of the order that is sorted first, in logits.
constexpr double kLeastBand = 0.25;

// Sum of exp((logit - max) / temperature), by lanes and then over lanes.
PENSTOCK_VECTOR_CLONES double SumOfExp(absl::Span<const float> logits,
                                       float max, double temperature) {
  std::array<double, kLanes> sums = {};
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    const float* lanes = logits.data() + i;  // no bounds checks: vectors
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] +=
          ExpNonPositive((double{lanes[lane]} - double{max}) / temperature);
    }
  }
  double total = 0;
  for (double sum : sums) total += sum;
  for (size_t i = whole; i < logits.size(); ++i) {
    total += ExpNonPositive((double{logits[i]} - double{max}) / temperature);
  }
  return total;
}

// The highest logit, or INTERNAL when one is not finite.
absl::StatusOr<float> FiniteMax(absl::Span<const float> logits, int32_t row) {
  std::array<float, kLanes> best, nan;
  best.fill(-std::numeric_limits<float>::infinity());
  nan.fill(0);  // becomes NaN with the first value that is not finite
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    const float* lanes = logits.data() + i;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      float value = lanes[lane];
      best[lane] = value > best[lane] ? value : best[lane];
      nan[lane] += value * 0.0f;
    }
  }
  float max = best[0], check = 0;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    max = std::max(max, best[lane]);
    check += nan[lane];
  }
  for (size_t i = whole; i < logits.size(); ++i) {
    max = std::max(max, logits[i]);
    check += logits[i] * 0.0f;
  }
  if (check == 0) return max;
  size_t id = 0;
  while (std::isfinite(logits[id])) ++id;
  return absl::InternalError(
      absl::StrCat("row ", row, ": the logit of token ", id, " is ", logits[id],
                   "; the model's weights or the row's KV pages are damaged"));
}

// Ascending keys are the canonical order: the logit's bits made monotonic and
// inverted, then the id.
uint64_t OrderKey(float logit, size_t id) {
  // + 0.0f makes -0 equal to 0, as it compares.
  uint32_t bits = std::bit_cast<uint32_t>(logit + 0.0f);
  uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
  return uint64_t{~ascending} << 32 | id;
}

TokenId IdOf(uint64_t key) { return static_cast<TokenId>(key & 0xffffffffu); }

}  // namespace

absl::StatusOr<SampledToken> Sampler::Sample(absl::Span<const float> logits,
                                             const SampleRow& row) {
  CHECK(!logits.empty());
  ASSIGN_OR_RETURN(float max, FiniteMax(logits, row.row));
  const SamplingParams& params = row.params;
  StartOrder(logits, max, std::max(4.0 * params.temperature, kLeastBand));
  SampledToken sampled;
  if (params.temperature > 0) {
    sampled.token = Draw(row);
  } else {
    sampled.token = static_cast<TokenId>(
        std::find(logits.begin(), logits.end(), max) - logits.begin());
  }
  if (params.logprobs >= 0) {
    sampled.logprobs = Logprobs(sampled.token, params.logprobs);
  }
  return sampled;
}

absl::StatusOr<TokenLogprobs> Sampler::Score(absl::Span<const float> logits,
                                             const ScoreRow& row) {
  CHECK(!logits.empty());
  ASSIGN_OR_RETURN(float max, FiniteMax(logits, row.row));
  StartOrder(logits, max, kLeastBand);
  return Logprobs(row.token, row.best);
}

void Sampler::StartOrder(absl::Span<const float> logits, float max,
                         double band) {
  logits_ = logits;
  max_ = max;
  sorted_to_ = 0;
  band_ = band;
  order_.clear();
}

bool Sampler::Reach(size_t n) {
  if (n >= logits_.size()) return false;
  while (order_.size() <= n) SortNextBand();
  return true;
}

// Bands double in width, so that a flat row costs few passes and a peaked one
// sorts few tokens.
void Sampler::SortNextBand() {
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

double Sampler::Mass(double temperature, size_t kept) {
  if (kept == logits_.size()) return SumOfExp(logits_, max_, temperature);
  double mass = 0;
  for (size_t n = 0; n < kept && Reach(n); ++n) {
    double weight = ExpNonPositive(
        (double{logits_[IdOf(order_[n])]} - double{max_}) / temperature);
    if (weight <= kLeastExp) break;
    mass += weight;
  }
  return mass;
}

TokenId Sampler::Draw(const SampleRow& row) {
  const SamplingParams& params = row.params;
  double temperature = params.temperature;
  size_t kept = logits_.size();
  if (params.top_k > 0) kept = std::min<size_t>(kept, params.top_k);
  double mass = Mass(temperature, kept);
  auto weight = [&](size_t n) {
    return ExpNonPositive((double{logits_[IdOf(order_[n])]} - double{max_}) /
                          temperature);
  };
  if (params.top_p < 1) {
    double enough = double{params.top_p} * mass;
    double sum = 0;
    size_t n = 0;
    for (; n < kept && sum < enough && Reach(n); ++n) {
      double w = weight(n);
      if (w <= kLeastExp) break;
      sum += w;
    }
    kept = std::max<size_t>(n, 1);
    mass = sum;
  }
  double target = SampleUniform(params.seed, row.sample, row.position) * mass;
  double sum = 0;
  TokenId drawn = 0;
  // Rounding can leave the sum at the end a little short of the target: then
  // the last token that can be drawn at all is it.
  for (size_t n = 0; n < kept && Reach(n); ++n) {
    double w = weight(n);
    if (w <= kLeastExp) break;
    drawn = IdOf(order_[n]);
    sum += w;
    if (sum > target) break;
  }
  return drawn;
}

TokenLogprobs Sampler::Logprobs(TokenId token, int best) {
  double log_sum = std::log(SumOfExp(logits_, max_, 1.0));
  auto logprob = [&](TokenId id) {
    // Two finite logits can be further apart than a float reaches.
    constexpr double kLeast = std::numeric_limits<float>::lowest();
    return static_cast<float>(
        std::max(double{logits_[id]} - double{max_} - log_sum, kLeast));
  };
  TokenLogprobs logprobs;
  logprobs.logprob = logprob(token);
  for (size_t n = 0; n < static_cast<size_t>(best) && Reach(n); ++n) {
    TokenId id = IdOf(order_[n]);
    logprobs.top.emplace_back(id, logprob(id));
  }
  return logprobs;
}

}  // namespace penstock
