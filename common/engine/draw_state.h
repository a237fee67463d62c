#pragma once

#include <memory>

#include "common/model/generate_request.h"
#include "common/model/text/tokenizer.h"
#include "kernels/api/step_plan.h"

namespace penstock {

// What one answer's next draw depends on beside its logits. A value with one
// owner: a copy is a state of its own, for another answer that goes on from
// the same tokens. What was handed to a step stays as it is while the step
// runs, so Add is called between steps only.
class DrawState {
 public:
  // `tokenizer` and `request` are read here only.
  DrawState(const GenerateRequest& request, const Tokenizer& tokenizer);
  DrawState(const DrawState& other);
  DrawState& operator=(const DrawState& other);

  // A token was drawn.
  void Add(const SampledToken& sampled);

  // Sets `history` and `banned` of the draw of the answer's token number
  // `index`, from 0.
  void Fill(int index, SampleRow& row) const;

  // Whether token number `index` may not end the answer.
  bool MustGoOn(int index) const { return index < min_tokens_; }

 private:
  int min_tokens_;
  std::vector<TokenId> stops_;  // sorted; empty when min_tokens_ is 0
  std::shared_ptr<SampleHistory> history_;  // null: nothing looks back
};

// Every token that ends an answer, sorted, each once.
std::vector<TokenId> StopTokens(const StopConditions& stop,
                                const Tokenizer& tokenizer);

}  // namespace penstock
