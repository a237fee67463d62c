#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/id.h"

namespace penstock {

// How the next token is drawn. temperature 0 is greedy: the highest logit, the
// lowest id on a tie.
struct SamplingParams {
  float temperature = 1.0f;
  int top_k = 0;       // 0: all
  float top_p = 1.0f;  // (0, 1]; 1: all
  uint64_t seed = 0;   // drawn by the router when the client gave none
  // Log-probabilities of the best N beside the chosen token's own; -1: none.
  int logprobs = -1;
};

struct StopConditions {
  int max_tokens = 16;
  std::vector<TokenId> stop_ids;  // beside the model's own
  std::vector<std::string> stop_strings;
  bool ignore_eos = false;
};

// Bounds on what one request may ask; the edge refuses what lies beyond.
struct RequestLimits {
  int max_prompt_tokens = 0;  // the context, less one token to generate
  int context_length = 0;
  int vocab_size = 0;
  int max_stop_strings = 16;
  int max_stop_string_bytes = 256;
  int max_logprobs = 20;
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
  // Isolates cached KV: equal tokens under different salts never share.
  std::string tenant;
  std::string cache_salt;
  int priority = 0;
  // From receipt; clocks of hosts never meet, so a duration travels.
  absl::Duration timeout = absl::InfiniteDuration();
};

// INVALID_ARGUMENT names the field, its value and what is allowed.
absl::Status Validate(const GenerateRequest& request,
                      const RequestLimits& limits);

}  // namespace penstock
