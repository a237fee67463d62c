#pragma once

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "protos/inference.pb.h"

namespace penstock {

// The flags of `penstock generate` that say how tokens are drawn and when an
// answer ends. What is not given stays absent from the request, so that the
// server's defaults hold.
class SamplingFlags {
 public:
  // `command` keeps pointers to this, which must outlive its parsing.
  void AddTo(CLI::App& command);

  // INVALID_ARGUMENT names a flag whose text cannot be read. Ranges are the
  // server's business.
  absl::Status Fill(v1::GenerateRequest* request) const;

  // Several answers come back, or one that is known only at the end.
  bool deferred() const { return n_.value_or(1) > 1 || best_of_ || beam_; }

 private:
  void AddCuts(CLI::App& command);
  void AddPenalties(CLI::App& command);
  void AddTokenChoice(CLI::App& command);
  void AddEnd(CLI::App& command);
  void AddAnswers(CLI::App& command);
  void FillCuts(v1::Sampling* sampling) const;
  void FillPenalties(v1::Sampling* sampling) const;
  absl::Status FillTokenChoice(v1::Sampling* sampling) const;
  absl::Status FillStop(v1::Stop* stop) const;

  std::optional<float> temperature_, top_p_, min_p_, typical_p_, top_n_sigma_;
  std::optional<int> top_k_;
  std::optional<float> xtc_probability_, xtc_threshold_;
  bool mirostat_ = false;
  std::optional<float> mirostat_tau_, mirostat_eta_;
  std::optional<float> repetition_, presence_, frequency_;
  std::optional<int> penalty_window_;
  std::optional<float> dry_multiplier_, dry_base_;
  std::optional<int> dry_allowed_length_, dry_range_;
  std::vector<std::string> dry_breakers_;
  bool dry_no_breakers_ = false;
  std::vector<std::string> logit_bias_;
  std::vector<int> allowed_tokens_;
  std::string stages_;
  std::optional<uint64_t> seed_;
  std::optional<int> logprobs_;

  int max_tokens_ = 128;
  std::optional<int> min_tokens_;
  std::vector<std::string> stops_;
  std::vector<int> stop_ids_;
  bool ignore_eos_ = false;

  std::optional<int> n_, best_of_, beam_, prompt_logprobs_;
  std::optional<float> length_penalty_;
};

}  // namespace penstock
