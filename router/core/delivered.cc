#include "router/core/delivered.h"

#include "common/base/check.h"

namespace penstock {

void Delivered::Add(const TokenFrame& frame) {
  if (!frame.prompt.tokens.empty()) {
    scored_ =
        frame.prompt.first_index + static_cast<int>(frame.prompt.tokens.size());
  }
  const bool ended = frame.finish != FinishReason::kNone;
  if (frame.tokens.empty() && !ended) return;
  if (frame.sample >= static_cast<int>(samples_.size())) {
    samples_.resize(frame.sample + 1);
  }
  Sample& sample = samples_[frame.sample];
  CHECK(!sample.ended &&
        (frame.tokens.empty() ||
         frame.first_index == static_cast<int>(sample.tokens.size())))
      << "token " << frame.first_index << " of sample " << frame.sample
      << " after " << sample.tokens.size();
  sample.ended = ended;
  tokens_ += static_cast<int>(frame.tokens.size());
  for (const FrameToken& token : frame.tokens) {
    sample.tokens.push_back({token.id, token.mirostat_mu});
  }
}

std::vector<std::vector<DeliveredToken>> Delivered::ForLegs(
    const GenerateRequest& request) const {
  std::vector<std::vector<DeliveredToken>> samples;
  if (request.deferred()) return samples;
  for (const Sample& sample : samples_) samples.push_back(sample.tokens);
  return samples;
}

std::vector<SampleStart> Delivered::starts() const {
  std::vector<SampleStart> starts;
  for (const Sample& sample : samples_) {
    starts.push_back({static_cast<int>(sample.tokens.size()), sample.ended});
  }
  return starts;
}

std::vector<TokenId> Delivered::History(const GenerateRequest& request) const {
  LegRequest leg;
  leg.request.prompt = request.prompt;
  leg.request.n = request.answers();
  leg.delivered = ForLegs(request);
  return leg.history();
}

}  // namespace penstock
