#include "common/cost/cost_model.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
int64_t AttentionPairs(int tokens, int cached) {
  return int64_t{tokens} * cached + int64_t{tokens} * (tokens - 1) / 2;
}

CostModel::CostModel(const CostCoefficients& c)
    : c_(c),
      fixed_seconds_(absl::ToDoubleSeconds(c.prefill_fixed)),
      token_seconds_(absl::ToDoubleSeconds(c.prefill_token)),
      pair_seconds_(absl::ToDoubleSeconds(c.prefill_pair)) {}

absl::StatusOr<CostModel> CostModel::Create(
    const CostCoefficients& coefficients) {
  const CostCoefficients& c = coefficients;
  const std::pair<const char*, absl::Duration> named[] = {
      {"prefill_fixed", c.prefill_fixed},
      {"prefill_token", c.prefill_token},
      {"prefill_pair", c.prefill_pair},
      {"step_fixed", c.step_fixed},
      {"step_sequence", c.step_sequence},
      {"step_context_token", c.step_context_token},
      {"transfer_fixed", c.transfer_fixed},
      {"transfer_mebibyte", c.transfer_mebibyte},
  };
  for (const auto& [name, value] : named) {
    if (value < absl::ZeroDuration() || value == absl::InfiniteDuration()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cost coefficient ", name, " is ", absl::FormatDuration(value),
          "; it must be finite and not negative"));
    }
  }
  return CostModel(coefficients);
}

absl::Duration CostModel::Prefill(int tokens, int cached) const {
  CHECK(tokens >= 0 && cached >= 0) << tokens << " " << cached;
  if (tokens == 0) return absl::ZeroDuration();
  return c_.prefill_fixed + tokens * c_.prefill_token +
         AttentionPairs(tokens, cached) * c_.prefill_pair;
}

double CostModel::PrefillSeconds(int tokens, int cached) const {
  CHECK(tokens >= 0 && cached >= 0) << tokens << " " << cached;
  if (tokens == 0) return 0;
  return fixed_seconds_ + tokens * token_seconds_ +
         static_cast<double>(AttentionPairs(tokens, cached)) * pair_seconds_;
}

absl::Duration CostModel::DecodeStep(int sequences,
                                     int64_t context_tokens) const {
  CHECK(sequences >= 0 && context_tokens >= 0)
      << sequences << " " << context_tokens;
  if (sequences == 0) return absl::ZeroDuration();
  return c_.step_fixed + sequences * c_.step_sequence +
         context_tokens * c_.step_context_token;
}

absl::Duration CostModel::DecodeShare(int steps, int context) const {
  CHECK(steps >= 0 && context >= 0) << steps << " " << context;
  int64_t context_tokens =
      int64_t{steps} * context + int64_t{steps} * (steps + 1) / 2;
  return steps * c_.step_sequence + context_tokens * c_.step_context_token;
}

absl::Duration CostModel::Transfer(uint64_t bytes) const {
  if (bytes == 0) return absl::ZeroDuration();
  constexpr uint64_t kMebibyte = uint64_t{1} << 20;
  // In two parts, so that no product leaves 64 bits.
  return c_.transfer_fixed + (bytes / kMebibyte) * c_.transfer_mebibyte +
         (bytes % kMebibyte) * c_.transfer_mebibyte / kMebibyte;
}

}  // namespace penstock
