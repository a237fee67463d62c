#include "kernels/host/truncation.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/exp.h"
#include "kernels/host/log.h"
#include "kernels/host/row_scans.h"

namespace penstock {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// How many of the best have at least this weight; the first always does.
size_t CountFrom(double weight, Candidates& candidates) {
  size_t n = 1;
  while (candidates.Reach(n) && candidates.Weight(n) >= weight) ++n;
  return n;
}

// The lowest logit that is at most `sigmas` deviations below the best.
double SigmaBound(double sigmas, Candidates& candidates) {
  const auto count = static_cast<double>(candidates.size());
  double mean = 0, squares = 0;
  if (candidates.whole()) {
    mean = SumOfLogits(candidates.logits()) / count;
    squares = SumOfSquares(candidates.logits(), mean);
  } else {
    for (size_t n = 0; candidates.Reach(n); ++n) mean += candidates.Logit(n);
    mean /= count;
    for (size_t n = 0; candidates.Reach(n); ++n) {
      const double deviation = candidates.Logit(n) - mean;
      squares += deviation * deviation;
    }
  }
  candidates.Reach(0);
  return candidates.Logit(0) - sigmas * std::sqrt(squares / count);
}

// Mean of the candidates' depths, weighted by their shares: the entropy less
// ln Mass(), so that |depth - mean| is the distance of surprise from entropy.
double MeanDepth(Candidates& candidates) {
  double sum = 0;
  if (candidates.whole()) {
    sum = SumOfWeightedDepths(candidates.logits(), candidates.max(),
                              candidates.temperature());
  } else {
    for (size_t n = 0; candidates.Reach(n); ++n) {
      const double weight = candidates.Weight(n);
      if (Candidates::IsNothing(weight)) break;
      sum += weight * candidates.Depth(n);
    }
  }
  return sum / candidates.Mass();
}

}  // namespace

void KeepTopK(int k, Candidates& candidates) {
  if (k <= 0) return;
  candidates.KeepFirst(std::min(candidates.size(), static_cast<size_t>(k)));
}

void KeepTopP(float share, Candidates& candidates) {
  if (share >= 1) return;
  const double enough = double{share} * candidates.Mass();
  double sum = 0;
  size_t n = 0;
  for (; sum < enough && candidates.Reach(n); ++n) {
    const double weight = candidates.Weight(n);
    if (Candidates::IsNothing(weight)) break;
    sum += weight;
  }
  candidates.KeepFirst(std::max<size_t>(n, 1));
}

void KeepMinP(float least, Candidates& candidates) {
  if (least <= 0) return;
  candidates.KeepFirst(CountFrom(least, candidates));
}

void KeepTopNSigma(float n, Candidates& candidates) {
  if (n <= 0) return;
  const double bound = SigmaBound(n, candidates);
  size_t kept = 1;
  while (candidates.Reach(kept) && candidates.Logit(kept) >= bound) ++kept;
  candidates.KeepFirst(kept);
}

void KeepTypical(float share, Candidates& candidates) {
  if (share >= 1) return;
  const double enough = double{share} * candidates.Mass();
  const double mean = MeanDepth(candidates);
  // What is nearest to the mean is next to where it lies in the order: the
  // candidates that are taken are one run [first, last), which grows.
  size_t last = 0;
  while (candidates.Reach(last) && candidates.Depth(last) < mean) ++last;
  size_t first = last;
  for (double sum = 0; sum < enough || first == last;) {
    const bool above = first > 0, below = candidates.Reach(last);
    if (!above && !below) break;
    // On a tie the better.
    if (above && (!below || mean - candidates.Depth(first - 1) <=
                                candidates.Depth(last) - mean)) {
      sum += candidates.Weight(--first);
    } else {
      const double weight = candidates.Weight(last++);
      if (Candidates::IsNothing(weight) && first == 0) break;
      sum += weight;
    }
  }
  candidates.KeepFirst(last);
  candidates.DropFirst(first);
}

void ExcludeTopChoices(const XtcParams& params, double coin,
                       Candidates& candidates) {
  // No two tokens have more than half each.
  if (params.threshold > 0.5f || coin >= double{params.probability}) return;
  const double least = double{params.threshold} * candidates.Mass();
  size_t choices = 0;
  while (candidates.Reach(choices) && candidates.Weight(choices) >= least) {
    ++choices;
  }
  if (choices > 1) candidates.DropFirst(choices - 1);
}

void KeepUnsurprising(double mu, Candidates& candidates) {
  // p = 2^-mu; above 1 when mu is negative: then only the best stays.
  const double share = mu > 0 ? ExpNonPositive(-mu * kLn2) : 2.0;
  candidates.KeepFirst(CountFrom(share * candidates.Mass(), candidates));
}

double NextMirostatMu(const MirostatParams& params, double mu, double share) {
  const double surprise = -LogOf(share) / kLn2;
  return mu - double{params.eta} * (surprise - double{params.tau});
}

}  // namespace penstock
