#include "tools/simulator/sim_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// SplitMix64's finaliser.
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool HasPenalties(const SamplingParams& params) {
  const PenaltyParams& penalties = params.penalties;
  return penalties.repetition != 1 || penalties.frequency != 0 ||
         penalties.presence != 0;
}

}  // namespace

KvLayout SimModel::Layout() {
  KvLayout layout;
  layout.layers = 1;
  layout.kv_heads = 1;
  layout.head_dim = 1;
  layout.value_dim = 1;
  layout.type = KvType::kF32;
  return layout;
}

uint64_t SimModel::Word(TokenId token, int position) {
  return Mix(Mix(token + 1) + position);
}

uint64_t SimModel::Fold(uint64_t state, uint64_t word) {
  return Mix(state ^ word);
}

SampledToken SimModel::Draw(uint64_t state, const SamplingParams& params,
                            uint64_t position, uint32_t sample,
                            const SampleHistory* looks_back) {
  const uint64_t luck =
      params.temperature == 0 ? 0 : Mix(Mix(params.seed + sample) + position);
  uint64_t counts = 0;
  float mu = 0;
  if (looks_back != nullptr && HasPenalties(params)) {
    const int prompt = looks_back->prompt_tokens;
    for (int i = 0; i < static_cast<int>(looks_back->tokens.size()); ++i) {
      counts += Mix(2 * uint64_t(looks_back->tokens[i]) + (i >= prompt));
    }
  }
  if (looks_back != nullptr && params.mirostat.on) mu = looks_back->mirostat_mu;
  const uint64_t drawn =
      Mix(state ^ Mix(luck ^ Mix(counts) ^ Mix(std::bit_cast<uint32_t>(mu))));
  SampledToken token;
  // Never the stop token by chance: lengths are the test's to choose.
  token.token = static_cast<TokenId>(1 + drawn % (kVocabulary - 1));
  if (params.mirostat.on) {
    token.mirostat_mu = static_cast<float>(Mix(drawn) % 1024) / 64;
  }
  return token;
}

std::vector<float> SimModel::Logprobs(uint64_t state) {
  std::vector<double> logits;
  double sum = 0;
  for (int token = 0; token < kVocabulary; ++token) {
    logits.push_back(8.0 * (Mix(state ^ Mix(token + 77)) >> 40) / (1 << 24));
    sum += std::exp(logits.back());
  }
  std::vector<float> logprobs;
  for (double logit : logits) {
    logprobs.push_back(static_cast<float>(logit - std::log(sum)));
  }
  return logprobs;
}

uint64_t SimModel::StateOf(absl::Span<const TokenId> history) {
  uint64_t state = 0;
  for (size_t i = 0; i < history.size(); ++i) {
    state = Fold(state, Word(history[i], static_cast<int>(i)));
  }
  return state;
}

TokenLogprobs SimModel::Compare(uint64_t state, TokenId token, int best) {
  const std::vector<float> all = Logprobs(state);
  TokenLogprobs out;
  out.logprob = all[token];
  if (best <= 0) return out;
  std::vector<TokenId> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + best, order.end(),
                    [&](TokenId a, TokenId b) {
                      return all[a] != all[b] ? all[a] > all[b] : a < b;
                    });
  for (int i = 0; i < best; ++i) out.top.emplace_back(order[i], all[order[i]]);
  return out;
}

std::vector<TokenId> SimModel::Answer(const GenerateRequest& request, int count,
                                      uint32_t sample) {
  SampleHistory history;
  history.tokens = request.prompt;
  history.prompt_tokens = static_cast<int>(request.prompt.size());
  history.mirostat_mu = 2 * request.sampling.mirostat.tau;
  uint64_t state = StateOf(request.prompt);
  std::vector<TokenId> made;
  for (int i = 0; i < count; ++i) {
    const int position = history.prompt_tokens + i;
    const SampledToken drawn =
        Draw(state, request.sampling, position, sample, &history);
    made.push_back(drawn.token);
    history.tokens.push_back(drawn.token);
    history.mirostat_mu = drawn.mirostat_mu;
    state = Fold(state, Word(drawn.token, position));
  }
  return made;
}

std::vector<TokenId> SimModel::Generate(absl::Span<const TokenId> prompt,
                                        int count, uint64_t seed,
                                        uint32_t sample) {
  GenerateRequest request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.sampling.seed = seed;
  return Answer(request, count, sample);
}

SimTokenizer::SimTokenizer() {
  for (int i = 0; i < SimModel::kVocabulary; ++i) {
    texts_.push_back(absl::StrCat("<", i, ">"));
  }
}

absl::StatusOr<std::vector<TokenId>> SimTokenizer::EncodeRuns(
    absl::Span<const TextRun> runs) const {
  return absl::UnimplementedError("the simulation starts from token ids");
}

absl::string_view SimTokenizer::TokenBytes(TokenId id) const {
  return texts_[id];
}

bool SimTokenizer::IsSpecial(TokenId id) const {
  return id == SimModel::kStopToken;
}

}  // namespace penstock
