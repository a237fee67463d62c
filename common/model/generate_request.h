#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/id.h"

namespace penstock {

// The steps between logits and a drawn token. Logit bias and allowed tokens
// come before all of them, the draw after all.
enum class SamplerStage {
  kPenalties,  // repetition, frequency and presence
  kDry,
  kTopNSigma,
  kTopK,
  kTypicalP,
  kTopP,
  kMinP,
  kXtc,
  kTemperature,
};
inline constexpr int kSamplerStageCount = 9;

// Lowers what the text already has. Repetition counts the prompt and the
// answer, frequency and presence the answer only, as OpenAI defines them.
struct PenaltyParams {
  // Positive logits are divided by it, negative ones multiplied (Keskar et al.
  // 2019, "CTRL"); 1: off.
  float repetition = 1.0f;
  float frequency = 0.0f;  // taken off for each time that a token occurs
  float presence = 0.0f;   // taken off once when it occurs
  int window = -1;         // tokens looked back; -1: all
  friend bool operator==(const PenaltyParams&, const PenaltyParams&) = default;
};

// "Don't repeat yourself": a token that would lengthen a repeated run of at
// least `allowed_length` tokens loses multiplier * base^(run - allowed_length).
struct DryParams {
  float multiplier = 0.0f;  // 0: off
  float base = 1.75f;
  int allowed_length = 2;
  int window = -1;  // tokens looked back; -1: all
  // A run does not reach over a token whose text holds one of these.
  std::vector<std::string> breakers = {"\n", ":", "\"", "*"};
  friend bool operator==(const DryParams&, const DryParams&) = default;
};

// "Exclude top choices": with this probability, all tokens of at least
// `threshold` but the least likely of them are dropped.
struct XtcParams {
  float probability = 0.0f;  // 0: off
  float threshold = 0.1f;
  friend bool operator==(const XtcParams&, const XtcParams&) = default;
};

// Mirostat 2 (Basu et al. 2021): keeps the surprise of drawn tokens near `tau`
// bits. Replaces every other truncating stage.
struct MirostatParams {
  bool on = false;
  float tau = 5.0f;
  float eta = 0.1f;
  friend bool operator==(const MirostatParams&,
                         const MirostatParams&) = default;
};

// How the next token is drawn. temperature 0 is greedy: the highest logit after
// bias and penalties, the lowest id on a tie.
struct SamplingParams {
  float temperature = 1.0f;
  int top_k = 0;             // 0: all
  float top_p = 1.0f;        // (0, 1]; 1: all
  float min_p = 0.0f;        // [0, 1]: of the best token's share; 0: all
  float typical_p = 1.0f;    // (0, 1]; 1: all
  float top_n_sigma = 0.0f;  // standard deviations below the best logit; 0: all
  PenaltyParams penalties = {};
  DryParams dry = {};
  XtcParams xtc = {};
  MirostatParams mirostat = {};
  // Added to logits; sorted by token, each once.
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  // Only these may be drawn; empty: any. Sorted, each once.
  std::vector<TokenId> allowed_tokens = {};
  // Each at most once; a stage that is left out is not applied. Empty: the
  // order of SamplerStage.
  std::vector<SamplerStage> stages = {};
  uint64_t seed = 0;  // drawn by the router when the client gave none
  // Log-probabilities of the best N beside the chosen token's own; -1: none.
  int logprobs = -1;
};

// Beam search in place of sampling: `width` answers are kept, the best `n` are
// given back when all have ended. An answer's score is the sum of its
// log-probabilities over its length to the power of `length_penalty`.
struct BeamParams {
  int width = 0;  // 0: no beam search
  float length_penalty = 1.0f;
};

struct StopConditions {
  int max_tokens = 16;  // 0: with prompt_logprobs only, and nothing is made
  int min_tokens = 0;   // until then no stop token is drawn, no string searched
  std::vector<TokenId> stop_ids = {};  // beside the model's own
  std::vector<std::string> stop_strings = {};
  bool ignore_eos = false;
};

// Bounds on what one request may ask; the edge refuses what lies beyond.
struct RequestLimits {
  int max_prompt_tokens = 0;  // the context, less one token to generate
  int context_length = 0;
  int vocab_size = 0;
  int max_stop_strings = 16;
  int max_stop_string_bytes = 256;
  int max_stop_ids = 1024;
  int max_logprobs = 20;
  int max_answers = 128;  // n, best_of, beam width
  int max_logit_bias = 1024;
  int max_dry_breakers = 32;
};

// One client request after the edge: immutable, made once by the router, sent
// unchanged to both legs.
struct GenerateRequest {
  RequestId id;
  std::string client_request_id;  // x-request-id; for logs only
  std::string model;
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  StopConditions stop;
  int n = 1;  // answers; they share the prompt's pages
  // Answers that are made; the n of the highest mean log-probability are given
  // back, all at once. 0: n, as they come.
  int best_of = 0;
  BeamParams beam;
  // Log-probabilities of the prompt's own tokens with the best N beside each;
  // -1: none. Such a prompt is computed in full, cached or not.
  int prompt_logprobs = -1;
  // Isolates cached KV: equal tokens under different salts never share.
  std::string tenant;
  std::string cache_salt;
  // Names what goes together, such as a conversation: for the router's choice
  // of workers alone, and not sent to them. Empty: nothing.
  std::string session;
  int priority = 0;
  // From receipt; clocks of hosts never meet, so a duration travels.
  absl::Duration timeout = absl::InfiniteDuration();

  // Answers under way at once, at most.
  int answers() const {
    return beam.width > 0 ? beam.width : std::max(n, best_of);
  }
  // Nothing is given back before every answer has ended.
  bool deferred() const { return beam.width > 0 || best_of > 1; }
};

// INVALID_ARGUMENT names the field, its value and what is allowed.
absl::Status Validate(const GenerateRequest& request,
                      const RequestLimits& limits);

}  // namespace penstock
