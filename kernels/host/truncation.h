#pragma once

#include "kernels/api/step_plan.h"
#include "kernels/host/candidates.h"

namespace penstock {

// Stages that drop candidates. p(n) is candidate n's share of those that are
// left. At least one candidate stays. docs/sampling.md says where each formula
// comes from.

// The best k.
void KeepTopK(int k, Candidates& candidates);

// The shortest run of the best whose shares reach `share` (Holtzman et al.
// 2019, "nucleus").
void KeepTopP(float share, Candidates& candidates);

// Those with p(n) >= least * p(0).
void KeepMinP(float least, Candidates& candidates);

// Those whose logit is at most n standard deviations of the candidates' logits
// below the best (Tang et al. 2024, "Top-n-sigma").
void KeepTopNSigma(float n, Candidates& candidates);

// By how far their surprise -ln p(n) is from its mean, the entropy, the nearest
// whose shares reach `share` (Meister et al. 2022, "Locally typical sampling").
void KeepTypical(float share, Candidates& candidates);

// When `coin` is below the probability: of several tokens with
// p(n) >= threshold all but the least likely are dropped. `coin` is in [0, 1).
void ExcludeTopChoices(const XtcParams& params, double coin,
                       Candidates& candidates);

// Those whose surprise, -log2 p(n), is at most `mu` bits (Basu et al. 2021,
// "Mirostat", algorithm 2).
void KeepUnsurprising(double mu, Candidates& candidates);

// The next mu, when a token of `share` was drawn from what was kept.
double NextMirostatMu(const MirostatParams& params, double mu, double share);

}  // namespace penstock
