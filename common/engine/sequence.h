#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/id.h"
#include "common/engine/draw_state.h"
#include "common/model/block_hash.h"
#include "common/model/generate_request.h"
#include "common/model/text/sequence_text.h"
#include "common/model/text/tokenizer.h"
#include "common/model/token_frame.h"
#include "kernels/api/step_plan.h"
#include "kvstore/core/block_pool.h"

namespace penstock {

// One token on its way out of a sequence.
struct TokenDelivery {
  int sample = 0;
  int index = 0;  // among the generated tokens of the sample, from 0
  FrameToken token;
  FinishReason finish = FinishReason::kNone;
  std::string final_text;  // with finish: text that was held back
};

// The mutable state of one of a request's answers, with exactly one owner at a
// time. What moves with the KV is what was drawn, from which all else follows
// (randomness is a function of seed, sample and position, so no generator
// moves); see sequence_state.h. Blocks stay behind: they are this worker's.
class Sequence {
 public:
  // Sample 0, before anything was drawn. `root` seeds the block hash chain;
  // `stop_tokens` are the model's own. `context_length` bounds prompt plus
  // generated tokens.
  Sequence(GenerateRequest request, BlockHash root, const Tokenizer* tokenizer,
           int context_length);

  // The same so far as `sample` of the request, on the same blocks: whoever
  // writes into one of them first copies it.
  std::unique_ptr<Sequence> Fork(int sample) const;

  const GenerateRequest& request() const { return *request_; }
  int sample() const { return sample_; }
  const std::vector<TokenId>& tokens() const { return tokens_; }
  int length() const { return static_cast<int>(tokens_.size()); }
  int prompt_tokens() const {
    return static_cast<int>(request_->prompt.size());
  }
  int generated() const { return length() - prompt_tokens(); }
  BlockHash root() const { return root_; }

  // What is to be drawn from the row of the last token, for `row` of the step:
  // every answer's first token from the prompt's, then one token.
  std::vector<SampleRow> Draws(int32_t row) const;
  // What the next draw looks back at.
  const DrawState& draw_state() const { return draw_state_; }
  // Tokens that end the answer, sorted.
  std::vector<TokenId> StopTokens() const;

  // Takes one sampled token: counts it, turns it into text, decides whether it
  // ends the request. The one place where tokens are counted and stops found.
  TokenDelivery Append(const SampledToken& sampled);

  // Hash of each full block of tokens(), extended on demand.
  BlockHash HashOf(int block, const BlockHasher& hasher);

  // KV bookkeeping, the engine's: positions whose KV is complete, and the
  // blocks that hold them in order.
  int computed = 0;
  std::vector<BlockHold> blocks;
  int published = 0;       // leading blocks offered to the prefix cache
  int cached_tokens = 0;   // of the prompt, found at first admission
  bool looked_up = false;  // the first admission has happened
  // Prompt positions that this worker computed itself.
  int prompt_computed_here = 0;
  int scored = 0;  // leading prompt rows whose log-probabilities are known

 private:
  Sequence(const Sequence& other, int sample);

  bool IsStop(TokenId token) const;

  std::shared_ptr<const GenerateRequest> request_;
  int sample_ = 0;
  BlockHash root_;
  const Tokenizer* tokenizer_;
  int context_length_;
  std::vector<TokenId> tokens_;
  SequenceText text_;
  DrawState draw_state_;
  std::vector<BlockHash> hashes_;
};

}  // namespace penstock
