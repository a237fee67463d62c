#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/id.h"

namespace penstock {

enum class FinishReason { kNone, kStop, kLength };

struct TokenLogprobs {
  float logprob = 0;  // of the chosen token; natural logarithm
  std::vector<std::pair<TokenId, float>> top;  // best first
};

// One generated token as it is delivered. `text` is what may be shown now:
// whole characters, nothing that may still become a stop string. It can be
// empty, and can hold text of earlier tokens that was held back.
struct FrameToken {
  TokenId id = 0;
  std::string text;
  TokenLogprobs logprobs;  // empty unless asked for
  // State of the mirostat sampler after this token, for whoever goes on after
  // it; 0 when another sampler drew. Not shown to clients.
  float mirostat_mu = 0;
};

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;  // of the prompt, found in a prefix cache
  int completion_tokens = 0;
};

struct RequestTimings {
  absl::Duration queue, prefill, transfer, first_token, decode;
};

// What moved for this request; proof that KV really travelled.
struct TransferSummary {
  std::string transport;  // "local" when decode prefilled itself
  uint64_t bytes_moved = 0;
  uint64_t blocks_moved = 0;
  uint64_t blocks_shared = 0;  // taken by reference, in one process
  // Prompt tokens that decode computed itself; 0 after a handoff.
  uint64_t decode_prompt_tokens = 0;
};

// Log-probability of each prompt token, given those before it. The first has
// none: `tokens` begins with the second. A long prompt comes in several parts.
struct PromptLogprobs {
  int first_index = 0;  // in the prompt, of tokens[0]
  std::vector<TokenLogprobs> tokens;
};

// Worker -> router -> client. `first_index` counts the tokens of the sample
// before this frame, so that loss and doubling are visible.
struct TokenFrame {
  AttemptId attempt;
  int sample = 0;
  int first_index = 0;
  std::vector<FrameToken> tokens;
  PromptLogprobs prompt;  // of sample 0; empty unless asked for
  FinishReason finish = FinishReason::kNone;
  std::string final_text;  // with finish: held-back text that is text after all
  // On the last frame of the last sample that ends only.
  Usage usage;
  RequestTimings timings;
  TransferSummary transfer;
};

}  // namespace penstock
