#include "common/engine/sequence.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace penstock {

Sequence::Sequence(GenerateRequest request, BlockHash root,
                   const Tokenizer* tokenizer, int context_length)
    : request_(std::move(request)),
      root_(root),
      tokenizer_(tokenizer),
      context_length_(context_length),
      tokens_(request_.prompt),
      text_(tokenizer, request_.stop.stop_strings),
      draw_state_(request_, *tokenizer) {}

bool Sequence::IsStop(TokenId token) const {
  const std::vector<TokenId>& ids = request_.stop.stop_ids;
  if (std::find(ids.begin(), ids.end(), token) != ids.end()) return true;
  if (request_.stop.ignore_eos) return false;
  const std::vector<TokenId>& own = tokenizer_->stop_tokens();
  return std::find(own.begin(), own.end(), token) != own.end();
}

TokenDelivery Sequence::Append(const SampledToken& sampled) {
  TokenDelivery out;
  out.index = generated();
  tokens_.push_back(sampled.token);
  draw_state_.Add(sampled);
  out.token.id = sampled.token;
  out.token.logprobs = sampled.logprobs;
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
  if (generated() >= request_.stop.max_tokens || length() >= context_length_) {
    SequenceText::Result rest = text_.Flush();
    out.final_text = std::move(rest.text);
    out.finish = rest.stopped ? FinishReason::kStop : FinishReason::kLength;
  }
  return out;
}

void Sequence::Resume(std::vector<TokenId> generated, SequenceText text) {
  CHECK(this->generated() == 0);
  tokens_.insert(tokens_.end(), generated.begin(), generated.end());
  for (TokenId token : generated) draw_state_.Add({token, {}});
  text_ = std::move(text);
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
