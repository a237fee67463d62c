#include "decode_worker/core/kept_answer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock {
namespace {

constexpr size_t kFrameTokens = 256;

}  // namespace

std::vector<KeptAnswer> BestByMean(std::vector<KeptAnswer> answers, int n) {
  for (KeptAnswer& answer : answers) {
    answer.score /= static_cast<double>(answer.tokens.size());
  }
  std::stable_sort(answers.begin(), answers.end(),
                   [](const KeptAnswer& a, const KeptAnswer& b) {
                     return a.score > b.score;
                   });
  answers.resize(std::min<size_t>(answers.size(), n));
  return answers;
}

std::vector<TokenFrame> FramesOf(std::vector<KeptAnswer> answers) {
  std::vector<TokenFrame> frames;
  for (size_t i = 0; i < answers.size(); ++i) {
    KeptAnswer& answer = answers[i];
    for (size_t first = 0; first < answer.tokens.size();
         first += kFrameTokens) {
      const size_t end = std::min(first + kFrameTokens, answer.tokens.size());
      TokenFrame frame;
      frame.sample = static_cast<int>(i);
      frame.first_index = static_cast<int>(first);
      frame.tokens.assign(
          std::make_move_iterator(answer.tokens.begin() + first),
          std::make_move_iterator(answer.tokens.begin() + end));
      if (end == answer.tokens.size()) {
        frame.finish = answer.finish;
        frame.final_text = answer.final_text;
      }
      frames.push_back(std::move(frame));
    }
  }
  return frames;
}

}  // namespace penstock
