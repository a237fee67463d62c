#pragma once

#include <array>
#include <cstdint>

namespace penstock {

// Watches whether the hits that placements believe in are those that workers
// find: the alarm rises when, over the last few hundred placements, more than
// kRise of the prompts' tokens were predicted wrongly, and falls below kFall. A
// value type; pure.
class HitWatch {
 public:
  static constexpr double kRise = 0.10, kFall = 0.05;
  static constexpr int kWindow = 200;  // of two halves: 100 to 200 count

  // One placement's outcome. True: the alarm rose or fell.
  // Precondition: none is negative.
  bool Note(int prompt_tokens, int predicted, int actual);

  bool alarm() const { return alarm_; }
  // Of the prompts' tokens, predicted wrongly lately; 0 at first.
  double error() const;

 private:
  struct Half {
    int placements = 0;
    int64_t prompt_tokens = 0, wrong_tokens = 0;
  };
  std::array<Half, 2> halves_;  // the one that fills first
  bool alarm_ = false;
};

}  // namespace penstock
