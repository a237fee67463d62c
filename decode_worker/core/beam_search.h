#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"
#include "decode_worker/core/kept_answer.h"

namespace penstock {

// The choices of a beam search: which continuations live, which answers are
// kept, when it is over. Knows neither sequences nor pages. As transformers'
// generate does with early_stopping=False: of the continuations of all beams,
// best first, those that end an answer are kept when they are among the best
// `width`, and the best `width` others go on. It is over when `width` answers
// are kept and no living beam, at its present length, scores higher than the
// worst of them. Single-threaded.
class BeamSearch {
 public:
  explicit BeamSearch(const BeamParams& params) : params_(params) {}

  // A living beam: the sum of its log-probabilities, and its best next tokens.
  struct Beam {
    double sum = 0;
    const std::vector<std::pair<TokenId, float>>* best = nullptr;
  };
  struct Continuation {
    int parent = 0;  // among the beams
    int choice = 0;  // among its best tokens
    double sum = 0;
  };
  struct Step {
    std::vector<Continuation> live, ended;  // best first
  };
  enum class Fate { kLives, kEnds, kBarred };

  // One step. `fate` is asked once for each continuation that is looked at,
  // best first; on equal sums the earlier beam is better. A barred one does not
  // count.
  Step Advance(absl::Span<const Beam> beams,
               const std::function<Fate(const Continuation&)>& fate) const;

  // Keeps an answer of that sum if it is among the best `width`; its length is
  // that of its tokens.
  void Keep(KeptAnswer answer, double sum);

  // No living beam can do better; `best` is their highest sum.
  bool Settled(double best, int length) const;

  // The best `n` answers, best first.
  std::vector<KeptAnswer> Take(int n);

 private:
  double Score(double sum, int length) const;

  BeamParams params_;
  std::vector<KeptAnswer> kept_;  // best first
};

}  // namespace penstock
