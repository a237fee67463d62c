#include "common/engine/sequence.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace penstock {
namespace {

// After a control token, as at the end of a chat's template, a text begins.
SequenceText::Start StartAfter(const std::vector<TokenId>& prompt,
                               const Tokenizer& tokenizer) {
  return prompt.empty() || tokenizer.IsSpecial(prompt.back())
             ? SequenceText::Start::kBegins
             : SequenceText::Start::kContinues;
}

}  // namespace

Sequence::Sequence(GenerateRequest request, BlockHash root,
                   const Tokenizer* tokenizer, int context_length)
    : request_(std::make_shared<const GenerateRequest>(std::move(request))),
      root_(root),
      tokenizer_(tokenizer),
      context_length_(context_length),
      tokens_(request_->prompt),
      text_(tokenizer, request_->stop.stop_strings,
            StartAfter(request_->prompt, *tokenizer)),
      draw_state_(*request_, *tokenizer) {}

Sequence::Sequence(const Sequence& other, int sample)
    : computed(other.computed),
      published(other.published),
      cached_tokens(other.cached_tokens),
      looked_up(other.looked_up),
      scored(other.scored),
      request_(other.request_),
      sample_(sample),
      root_(other.root_),
      tokenizer_(other.tokenizer_),
      context_length_(other.context_length_),
      tokens_(other.tokens_),
      text_(other.text_),
      draw_state_(other.draw_state_),
      hashes_(other.hashes_) {
  blocks.reserve(other.blocks.size());
  for (const BlockHold& hold : other.blocks) blocks.push_back(hold.Share());
}

std::unique_ptr<Sequence> Sequence::Fork(int sample) const {
  return std::unique_ptr<Sequence>(new Sequence(*this, sample));
}

std::vector<TokenId> Sequence::StopTokens() const {
  return penstock::StopTokens(request_->stop, *tokenizer_);
}

std::vector<SampleRow> Sequence::Draws(int32_t row) const {
  SampleRow draw;
  draw.row = row;
  draw.params = request_->sampling;
  draw.sample = static_cast<uint32_t>(sample_);
  draw.position = static_cast<uint64_t>(length());
  draw_state_.Fill(generated(), draw);
  if (request_->deferred()) {
    // Answers are compared by their log-probabilities.
    draw.params.logprobs = std::max(draw.params.logprobs, 0);
  }
  size_t count = generated() == 0 ? request_->answers() : 1;
  if (const int width = request_->beam.width; width > 0) {
    // However many of the best end an answer, `width` others are among them.
    const int best = width + static_cast<int>(StopTokens().size());
    draw.params.temperature = 0;
    draw.params.logprobs = std::max(draw.params.logprobs, best);
    count = 1;
  }
  std::vector<SampleRow> draws;
  draws.reserve(count);
  for (uint32_t i = 1; i < count; ++i) {
    draws.push_back(draw);
    ++draw.sample;
  }
  draws.push_back(std::move(draw));
  return draws;
}

bool Sequence::IsStop(TokenId token) const {
  const std::vector<TokenId>& ids = request_->stop.stop_ids;
  if (std::find(ids.begin(), ids.end(), token) != ids.end()) return true;
  if (request_->stop.ignore_eos) return false;
  const std::vector<TokenId>& own = tokenizer_->stop_tokens();
  return std::find(own.begin(), own.end(), token) != own.end();
}

TokenDelivery Sequence::Append(const SampledToken& sampled) {
  TokenDelivery out;
  out.sample = sample_;
  out.index = generated();
  tokens_.push_back(sampled.token);
  draw_state_.Add(sampled);
  out.token.id = sampled.token;
  out.token.logprobs = sampled.logprobs;
  if (request_->sampling.mirostat.on) {
    out.token.mirostat_mu = sampled.mirostat_mu;
  }
  if (IsStop(sampled.token)) {
    // The stop token is counted and reported, but is no text.
    out.finish = FinishReason::kStop;
    out.final_text = text_.Flush().text;
    return out;
  }
  SequenceText::Result text = draw_state_.MustGoOn(out.index)
                                  ? text_.PushUnsearched(sampled.token)
                                  : text_.Push(sampled.token);
  out.token.text = std::move(text.text);
  if (text.stopped) {
    out.finish = FinishReason::kStop;
    return out;
  }
  if (generated() >= request_->stop.max_tokens || length() >= context_length_) {
    SequenceText::Result rest = text_.Flush();
    out.final_text = std::move(rest.text);
    out.finish = rest.stopped ? FinishReason::kStop : FinishReason::kLength;
  }
  return out;
}

BlockHash Sequence::HashOf(int block, const BlockHasher& hasher) {
  CHECK((block + 1) * kBlockTokens <= length());
  while (static_cast<int>(hashes_.size()) <= block) {
    BlockHash parent = hashes_.empty() ? root_ : hashes_.back();
    hashes_.push_back(
        hasher.Next(parent, absl::MakeConstSpan(tokens_).subspan(
                                hashes_.size() * kBlockTokens, kBlockTokens)));
  }
  return hashes_[block];
}

}  // namespace penstock
