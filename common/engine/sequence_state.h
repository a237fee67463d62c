#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/engine/sequence.h"

namespace penstock {

// What was drawn for one answer so far, in order. With beam search: the best
// tokens after the prompt, none of them chosen yet.
using AnswerDraws = std::vector<SampledToken>;

// The part of a request's sequences that moves with its KV, as bytes,
// little-endian, the same on every host. The prompt travels once, whatever the
// number of answers; text and penalty counts follow from the tokens.
//   magic u32, version u32, prompt length u32, prompt u32 each, seed u64,
//   answers u32, of each: draws u32, of each: token u32, log-probability f32,
//   mirostat_mu f32, best tokens u32, of each: token u32, log-probability f32
// Without log-probabilities of best tokens that is StateBytes().
std::string SerializeState(const GenerateRequest& request,
                           absl::Span<const AnswerDraws> answers);

// Of `answers` answers with one token each.
constexpr size_t StateBytes(size_t prompt_tokens, size_t answers) {
  return 24 + 4 * prompt_tokens + 20 * answers;
}

// One answer that goes on here. Its sequence holds no blocks yet.
struct ResumedAnswer {
  std::unique_ptr<Sequence> sequence;
  AnswerDraws drawn;
  // What appending `drawn` gave; empty with beam search, where nothing was.
  std::vector<TokenDelivery> made;
  int delivered = 0;  // leading ones of `made` that the client has

  bool ended() const {
    return !made.empty() && made.back().finish != FinishReason::kNone;
  }
};

// Rebuilds the answers from `state` for a request that arrived on its own leg.
// The state is hostile input: INVALID_ARGUMENT names the field that is out of
// bounds or contradicts the request (prompt, seed, answers), UNIMPLEMENTED a
// version that this build does not know.
absl::StatusOr<std::vector<ResumedAnswer>> ParseState(
    absl::string_view state, const GenerateRequest& request, BlockHash root,
    const Tokenizer* tokenizer, int context_length);

}  // namespace penstock
