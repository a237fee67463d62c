#include "common/engine/draw_state.h"

#include <algorithm>

#include "common/model/text/token_search.h"

namespace penstock {
namespace {

bool LooksBack(const SamplingParams& sampling) {
  const PenaltyParams& penalties = sampling.penalties;
  return penalties.repetition != 1 || penalties.frequency != 0 ||
         penalties.presence != 0 || sampling.dry.multiplier > 0 ||
         sampling.mirostat.on;
}

std::shared_ptr<SampleHistory> StartHistory(const GenerateRequest& request,
                                            const Tokenizer& tokenizer) {
  const SamplingParams& sampling = request.sampling;
  if (!LooksBack(sampling)) return nullptr;
  auto history = std::make_shared<SampleHistory>();
  history->tokens = request.prompt;
  history->prompt_tokens = static_cast<int>(request.prompt.size());
  if (sampling.dry.multiplier > 0) {
    history->dry_breakers = TokensThatHold(tokenizer, sampling.dry.breakers);
  }
  // Where the algorithm starts: twice the surprise that it aims at.
  history->mirostat_mu = 2 * sampling.mirostat.tau;
  return history;
}

std::shared_ptr<SampleHistory> Copy(const SampleHistory* history) {
  return history == nullptr ? nullptr
                            : std::make_shared<SampleHistory>(*history);
}

}  // namespace

std::vector<TokenId> StopTokens(const StopConditions& stop,
                                const Tokenizer& tokenizer) {
  std::vector<TokenId> stops = stop.stop_ids;
  if (!stop.ignore_eos) {
    const std::vector<TokenId>& own = tokenizer.stop_tokens();
    stops.insert(stops.end(), own.begin(), own.end());
  }
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  return stops;
}

DrawState::DrawState(const GenerateRequest& request, const Tokenizer& tokenizer)
    : min_tokens_(request.stop.min_tokens),
      history_(StartHistory(request, tokenizer)) {
  if (min_tokens_ > 0) stops_ = StopTokens(request.stop, tokenizer);
}

DrawState::DrawState(const DrawState& other)
    : min_tokens_(other.min_tokens_),
      stops_(other.stops_),
      history_(Copy(other.history_.get())) {}

DrawState& DrawState::operator=(const DrawState& other) {
  min_tokens_ = other.min_tokens_;
  stops_ = other.stops_;
  history_ = Copy(other.history_.get());
  return *this;
}

void DrawState::Add(const SampledToken& sampled) {
  if (history_ == nullptr) return;
  history_->tokens.push_back(sampled.token);
  history_->mirostat_mu = sampled.mirostat_mu;
}

void DrawState::Fill(int index, SampleRow& row) const {
  row.history = history_;
  if (MustGoOn(index)) row.banned = stops_;
}

}  // namespace penstock
