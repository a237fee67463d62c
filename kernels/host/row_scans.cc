#include "kernels/host/row_scans.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/host/exp.h"
#include "kernels/host/vector_clones.h"

namespace penstock {
namespace {

// Independent partial results, so that the compiler can use vector registers
// without changing the order of any sum.
constexpr size_t kLanes = 16;

// Inlined into every clone of its callers, each for its own vectors.
template <typename Term>
[[gnu::always_inline]] inline double SumByLanes(absl::Span<const float> logits,
                                                Term term) {
  std::array<double, kLanes> sums = {};
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    const float* lanes = logits.data() + i;  // no bounds checks: vectors
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += term(lanes[lane]);
    }
  }
  double total = 0;
  for (double sum : sums) total += sum;
  for (size_t i = whole; i < logits.size(); ++i) total += term(logits[i]);
  return total;
}

}  // namespace

std::optional<float> HighestOfFinite(absl::Span<const float> logits) {
  std::array<float, kLanes> best, nan;
  best.fill(kExcludedLogit);
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
  return std::nullopt;
}

Peak FindPeak(absl::Span<const float> logits) {
  std::array<float, kLanes> best;
  std::array<uint32_t, kLanes> counts = {};
  best.fill(kExcludedLogit);
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    const float* lanes = logits.data() + i;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      float value = lanes[lane];
      best[lane] = value > best[lane] ? value : best[lane];
      counts[lane] += value == kExcludedLogit ? 0 : 1;
    }
  }
  Peak peak;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    peak.max = std::max(peak.max, best[lane]);
    peak.count += counts[lane];
  }
  for (size_t i = whole; i < logits.size(); ++i) {
    peak.max = std::max(peak.max, logits[i]);
    peak.count += logits[i] == kExcludedLogit ? 0 : 1;
  }
  return peak;
}

PENSTOCK_VECTOR_CLONES double SumOfWeights(absl::Span<const float> logits,
                                           float max, double temperature) {
  return SumByLanes(logits, [max, temperature](float logit) {
    return ExpNonPositive((double{logit} - double{max}) / temperature);
  });
}

PENSTOCK_VECTOR_CLONES double SumOfWeightedDepths(
    absl::Span<const float> logits, float max, double temperature) {
  return SumByLanes(logits, [max, temperature](float logit) {
    const double depth = (double{max} - double{logit}) / temperature;
    // Deeper than any weight that counts, and far from infinity.
    constexpr double kDeepest = 1000;
    return ExpNonPositive(-depth) * (depth > kDeepest ? kDeepest : depth);
  });
}

PENSTOCK_VECTOR_CLONES double SumOfLogits(absl::Span<const float> logits) {
  return SumByLanes(logits, [](float logit) {
    return logit == kExcludedLogit ? 0.0 : double{logit};
  });
}

PENSTOCK_VECTOR_CLONES double SumOfSquares(absl::Span<const float> logits,
                                           double mean) {
  return SumByLanes(logits, [mean](float logit) {
    const double deviation =
        logit == kExcludedLogit ? 0.0 : double{logit} - mean;
    return deviation * deviation;
  });
}

}  // namespace penstock
