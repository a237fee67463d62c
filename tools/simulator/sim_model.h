#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/model/generate_request.h"
#include "common/model/kv_layout.h"
#include "common/model/text/tokenizer.h"
#include "common/model/token_frame.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// The model of the simulation: the next token is a hash of the true token
// history. Its KV is one word a position, so that any wrong, stale, missing or
// doubled page changes the tokens that follow.
class SimModel {
 public:
  static constexpr int kVocabulary = 1000;
  static constexpr TokenId kStopToken = 0;

  // 16 positions of 8 bytes in a block.
  static KvLayout Layout();

  // What a position's KV holds.
  static uint64_t Word(TokenId token, int position);
  // Folds words in order of position.
  static uint64_t Fold(uint64_t state, uint64_t word);
  // What is drawn after that history, as a sampler would: of nothing but the
  // history where it is greedy, else of seed, sample and position too; of which
  // tokens were there how often, in prompt and answer, with penalties; of what
  // the draw before left, with mirostat. `looks_back` may be null where nothing
  // looks back.
  static SampledToken Draw(uint64_t state, const SamplingParams& params,
                           uint64_t position, uint32_t sample,
                           const SampleHistory* looks_back);
  // Of every token, by id: a log-softmax of hashes.
  static std::vector<float> Logprobs(uint64_t state);
  static uint64_t StateOf(absl::Span<const TokenId> history);
  // What a backend says of `token` and the best `best`, ties by id.
  static TokenLogprobs Compare(uint64_t state, TokenId token, int best);

  // `count` tokens of one of a request's answers, without regard to stops.
  static std::vector<TokenId> Answer(const GenerateRequest& request, int count,
                                     uint32_t sample = 0);
  // The same of a request that asks for nothing but its seed.
  static std::vector<TokenId> Generate(absl::Span<const TokenId> prompt,
                                       int count, uint64_t seed,
                                       uint32_t sample = 0);
};

// Token n is the text "<n>".
class SimTokenizer : public Tokenizer {
 public:
  SimTokenizer();
  absl::StatusOr<std::vector<TokenId>> EncodeRuns(
      absl::Span<const TextRun> runs) const override;
  absl::string_view TokenBytes(TokenId id) const override;
  bool IsSpecial(TokenId id) const override;
  int vocab_size() const override { return SimModel::kVocabulary; }
  const std::vector<TokenId>& stop_tokens() const override { return stops_; }
  TokenId bos() const override { return -1; }
  TokenId eos() const override { return SimModel::kStopToken; }
  bool add_bos() const override { return false; }

 private:
  std::vector<std::string> texts_;
  std::vector<TokenId> stops_ = {SimModel::kStopToken};
};

}  // namespace penstock
