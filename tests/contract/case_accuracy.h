#pragma once

#include <string>
#include <vector>

#include "tests/contract/model_cases.h"
#include "tests/contract/model_driver.h"

namespace penstock {

// How far a backend is from a golden generation, step by step, when it is fed
// the golden tokens whatever it would have drawn itself.
struct StepError {
  double margin = 0;  // of the golden step: best minus second log-probability
  bool argmax_equal = false;
  double top5 = 0;  // largest error of a log-probability of the golden five
};
std::vector<StepError> TeacherForce(ModelDriver& driver,
                                    const GenerationCase& golden, int chunk);

// Sums over any number of cases.
class AccuracySummary {
 public:
  void Add(const std::vector<StepError>& steps);

  int steps() const { return static_cast<int>(top5_.size()); }
  int argmax_different() const { return argmax_different_; }
  double largest_margin_missed() const { return largest_margin_missed_; }
  double top5_mean() const;
  // 0 < share <= 1; 1 is the maximum.
  double top5_quantile(double share) const;
  // One line with all of it.
  std::string ToString() const;

 private:
  std::vector<double> top5_;
  int argmax_different_ = 0;
  double largest_margin_missed_ = 0;
};

// log P(ids[i + 1] | ids[0..i]) for each i.
std::vector<double> ScoreText(ModelDriver& driver, const ScoreCase& golden);
double Perplexity(const std::vector<double>& logprobs);

}  // namespace penstock
