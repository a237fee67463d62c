#include "tests/contract/case_accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace penstock {
namespace {

// Best tokens to ask for: enough that a golden best-five token is among them
// even where quantised activations shuffle the order.
constexpr int kBest = 256;
// Rows scored at once; each returns the whole vocabulary.
constexpr int kScoredRows = 32;

// The log-probability of a token, or of the last one listed when it is not
// among the best.
double LogprobOf(const TokenLogprobs& logprobs, TokenId token) {
  for (const auto& [id, logprob] : logprobs.top) {
    if (id == token) return logprob;
  }
  return logprobs.top.back().second;
}

}  // namespace

std::vector<StepError> TeacherForce(ModelDriver& driver,
                                    const GenerationCase& golden, int chunk) {
  DrivenSequence sequence;
  sequence.tokens = golden.prompt;
  sequence.tokens.insert(sequence.tokens.end(), golden.generated.begin(),
                         golden.generated.end() - 1);
  sequence.sampling.logprobs = kBest;
  std::vector<SampledToken> drawn = driver.Prefill(
      sequence, chunk, static_cast<int>(golden.generated.size()));
  driver.Release(sequence);
  CHECK(drawn.size() == golden.generated.size());

  std::vector<StepError> steps(drawn.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    steps[i].margin = golden.margins[i];
    steps[i].argmax_equal = drawn[i].token == golden.generated[i];
    for (const auto& [id, logprob] : golden.top5[i]) {
      steps[i].top5 = std::max(
          steps[i].top5, std::abs(LogprobOf(drawn[i].logprobs, id) - logprob));
    }
  }
  return steps;
}

void AccuracySummary::Add(const std::vector<StepError>& steps) {
  for (const StepError& step : steps) {
    top5_.push_back(step.top5);
    if (step.argmax_equal) continue;
    ++argmax_different_;
    largest_margin_missed_ = std::max(largest_margin_missed_, step.margin);
  }
}

double AccuracySummary::top5_mean() const {
  return std::accumulate(top5_.begin(), top5_.end(), 0.0) / top5_.size();
}

double AccuracySummary::top5_quantile(double share) const {
  std::vector<double> sorted = top5_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(std::ceil(share * sorted.size())) - 1];
}

std::string AccuracySummary::ToString() const {
  return absl::StrFormat(
      "%d steps, argmax differs in %d (largest margin %.3f), top-5 error mean "
      "%.6f p99 %.6f max %.6f",
      steps(), argmax_different_, largest_margin_missed_, top5_mean(),
      top5_quantile(0.99), top5_quantile(1));
}

std::vector<double> ScoreText(ModelDriver& driver, const ScoreCase& golden) {
  DrivenSequence sequence;
  sequence.tokens = golden.ids;
  sequence.sampling.logprobs = std::numeric_limits<int>::max();
  std::vector<double> logprobs;
  const int scored = static_cast<int>(golden.ids.size()) - 1;
  while (sequence.computed < scored) {
    const int rows = std::min(kScoredRows, scored - sequence.computed);
    const int first = sequence.computed;
    std::vector<SampledToken> drawn =
        driver.Step({{.sequence = &sequence, .rows = rows, .sampled = rows}});
    for (int i = 0; i < rows; ++i) {
      logprobs.push_back(
          LogprobOf(drawn[i].logprobs, golden.ids[first + i + 1]));
    }
  }
  driver.Release(sequence);
  return logprobs;
}

double Perplexity(const std::vector<double>& logprobs) {
  return std::exp(-std::accumulate(logprobs.begin(), logprobs.end(), 0.0) /
                  logprobs.size());
}

}  // namespace penstock
