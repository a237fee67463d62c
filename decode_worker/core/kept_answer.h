#pragma once

#include <string>
#include <vector>

#include "common/model/token_frame.h"

namespace penstock {

// An answer that is given back only when all have ended.
struct KeptAnswer {
  std::vector<FrameToken> tokens;
  std::string final_text;
  FinishReason finish = FinishReason::kNone;
  double score = 0;  // higher is better
};

// The `n` of the highest mean log-probability, best first; `score` is that
// mean. Of equals, the earlier. Precondition: no answer is empty, and each
// `score` is its tokens' sum.
std::vector<KeptAnswer> BestByMean(std::vector<KeptAnswer> answers, int n);

// The answers whole, as samples 0, 1, ..., in frames of bounded size.
std::vector<TokenFrame> FramesOf(std::vector<KeptAnswer> answers);

}  // namespace penstock
