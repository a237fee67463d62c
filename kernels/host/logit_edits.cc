#include "kernels/host/logit_edits.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "kernels/host/candidates.h"
#include "kernels/host/row_scans.h"

namespace penstock {
namespace {

absl::Span<const TokenId> Window(const std::vector<TokenId>& tokens,
                                 int window) {
  const absl::Span<const TokenId> all = tokens;
  if (window < 0 || static_cast<size_t>(window) >= all.size()) return all;
  return all.last(window);
}

void CheckToken(TokenId token, absl::Span<const float> logits) {
  CHECK(token >= 0 && static_cast<size_t>(token) < logits.size())
      << "token " << token << " of " << logits.size();
}

// By squaring: C libraries' pow differs in the last bit.
double Power(double base, int exponent) {
  double power = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) power *= base;
    base *= base;
  }
  return power;
}

}  // namespace

void ApplyTokenChoice(const SampleRow& row, absl::Span<float> logits) {
  for (const auto& [token, bias] : row.params.logit_bias) {
    CheckToken(token, logits);
    logits[token] = FiniteLogit(double{logits[token]} + double{bias});
  }
  const std::vector<TokenId>& allowed = row.params.allowed_tokens;
  if (!allowed.empty()) {
    TokenId next = 0;
    for (TokenId token : allowed) {
      CheckToken(token, logits);
      std::fill(logits.begin() + next, logits.begin() + token, kExcludedLogit);
      next = token + 1;
    }
    std::fill(logits.begin() + next, logits.end(), kExcludedLogit);
  }
  for (TokenId token : row.banned) {
    CheckToken(token, logits);
    logits[token] = kExcludedLogit;
  }
}

void TokenPenalties::Apply(const PenaltyParams& params,
                           const SampleHistory& history,
                           absl::Span<float> logits) {
  counts_.resize(std::max(counts_.size(), logits.size()));
  const auto window = Window(history.tokens, params.window);
  const size_t skipped = history.tokens.size() - window.size();
  for (size_t i = 0; i < window.size(); ++i) {
    const TokenId token = window[i];
    CheckToken(token, logits);
    // One more than how often the answer has it, once it occurs at all.
    int32_t& count = counts_[token];
    if (count == 0) {
      seen_.push_back(token);
      count = 1;
    }
    if (skipped + i >= static_cast<size_t>(history.prompt_tokens)) ++count;
  }
  for (TokenId token : seen_) {
    const int32_t in_answer = std::exchange(counts_[token], 0) - 1;
    float& logit = logits[token];
    if (logit == kExcludedLogit) continue;
    double changed = logit > 0 ? logit / double{params.repetition}
                               : logit * double{params.repetition};
    changed -= in_answer * double{params.frequency};
    if (in_answer > 0) changed -= double{params.presence};
    logit = FiniteLogit(changed);
  }
  seen_.clear();
}

void DryPenalty::Apply(const DryParams& params, const SampleHistory& history,
                       absl::Span<float> logits) {
  const auto window = Window(history.tokens, params.window);
  const auto count = static_cast<int>(window.size());
  const std::vector<TokenId>& breakers = history.dry_breakers;
  auto breaks = [&](TokenId token) {
    return std::binary_search(breakers.begin(), breakers.end(), token);
  };
  // The text backwards: a run that ends the text begins it.
  auto back = [&](int i) { return window[count - 1 - i]; };
  int limit = 0;  // how far back a run may reach
  while (limit < count && !breaks(back(limit))) ++limit;
  if (limit < params.allowed_length) return;

  longest_.resize(std::max(longest_.size(), logits.size()));
  // Z-algorithm: [left, right) is the known match that reaches furthest.
  matches_.assign(count, 0);
  for (int i = 1, left = 0, right = 0; i < count; ++i) {
    int match = i < right ? std::min(right - i, matches_[i - left]) : 0;
    while (i + match < count && back(match) == back(i + match)) ++match;
    if (i + match > right) {
      left = i;
      right = i + match;
    }
    matches_[i] = match;
    const int run = std::min(match, limit);
    if (run < params.allowed_length) continue;
    const TokenId next = back(i - 1);  // what followed the run there
    CheckToken(next, logits);
    if (longest_[next] == 0) touched_.push_back(next);
    longest_[next] = std::max(longest_[next], run);
  }
  for (TokenId token : touched_) {
    const int run = std::exchange(longest_[token], 0);
    float& logit = logits[token];
    if (logit == kExcludedLogit || breaks(token)) continue;
    logit = FiniteLogit(logit -
                        double{params.multiplier} *
                            Power(params.base, run - params.allowed_length));
  }
  touched_.clear();
}

}  // namespace penstock
