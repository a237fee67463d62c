#include "tools/simulator/sim_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {

void SimClient::OnAdmitted(const PlacementSummary& where) {
  ++heard;
  if (admitted || ended) violation = "admitted twice or after its end";
  admitted = true;
  placement = where;
}

void SimClient::OnFrame(TokenFrame frame) {
  ++heard;
  if (frame.attempt < attempt) violation = "a frame of an attempt given up";
  attempt = frame.attempt;
  if (ended || !admitted) violation = "a frame outside the request's life";
  for (TokenLogprobs& token : frame.prompt.tokens) {
    if (frame.prompt.first_index != static_cast<int>(prompt.size()) + 1) {
      violation = "a prompt token's log-probability is missing or doubled";
    }
    ++frame.prompt.first_index;
    prompt.push_back(std::move(token));
  }
  if (frame.sample < 0 || frame.sample >= request.n ||
      finished.contains(frame.sample)) {
    violation = "a sample that nobody asked for, or after its end";
  }
  std::vector<TokenId>& sample = samples[frame.sample];
  if (frame.first_index != static_cast<int>(sample.size()) &&
      !frame.tokens.empty()) {
    violation = "a token is missing or doubled";
  }
  for (const FrameToken& token : frame.tokens) {
    sample.push_back(token.id);
    if (frame.sample == 0) tokens.push_back(token.id);
    texts[frame.sample] += token.text;
    if (request.sampling.logprobs >= 0) {
      logprobs[frame.sample].push_back(token.logprobs);
    }
  }
  texts[frame.sample] += frame.final_text;
  if (frame.finish != FinishReason::kNone) {
    finished[frame.sample] = frame.finish;
    const bool all = static_cast<int>(finished.size()) == request.n;
    if (all != (frame.usage.prompt_tokens > 0)) {
      violation = "usage belongs on the last frame only";
    }
  }
  trace(absl::StrCat("client ", request.client_request_id, " tokens ",
                     frame.first_index, " +", frame.tokens.size(), " finish ",
                     static_cast<int>(frame.finish)));
  if (frame.finish != FinishReason::kNone) last = std::move(frame);
}

void SimClient::OnFinished(const absl::Status& status) {
  ++heard;
  if (ended) violation = "ended twice";
  ended = status;
  trace(absl::StrCat("client ", request.client_request_id, " ended ",
                     OutcomeName(status)));
  on_end();
}

}  // namespace penstock
