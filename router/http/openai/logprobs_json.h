#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/model/text/tokenizer.h"
#include "common/model/token_frame.h"
#include "router/http/openai/json_body.h"

namespace penstock {

// A token as text of its own. Bytes that are no whole characters are spelt
// "bytes:\xe2\x9c", as OpenAI does, so that different tokens stay different.
std::string TokenText(const Tokenizer& tokenizer, TokenId id);

// {"content": [...]} of a chat.
ApiJson ChatLogprobs(const Tokenizer& tokenizer,
                     absl::Span<const FrameToken> tokens, int top);

// The four lists of a completion. Offsets count characters from `offset` on.
class CompletionLogprobs {
 public:
  CompletionLogprobs(const Tokenizer* tokenizer, int top)
      : tokenizer_(tokenizer), top_(top) {}

  // `logprobs` null: the first token of a prompt has none.
  void Add(TokenId id, const TokenLogprobs* logprobs);
  // What was added since the last call; offsets go on.
  ApiJson Take();

 private:
  const Tokenizer* tokenizer_;
  int top_;
  size_t offset_ = 0;
  ApiJson tokens_ = ApiJson::array(), logprobs_ = ApiJson::array(),
          top_logprobs_ = ApiJson::array(), offsets_ = ApiJson::array();
};

// What others call prompt_logprobs: null for the first token, then one object
// for each with the token's own entry first, keyed by token id.
ApiJson PromptLogprobsJson(const Tokenizer& tokenizer,
                           absl::Span<const TokenId> prompt,
                           absl::Span<const TokenLogprobs> logprobs);

}  // namespace penstock
