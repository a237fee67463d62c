#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "common/cost/cost_model.h"
#include "common/peer/worker_report.h"

namespace penstock {

// What a step computes, as far as its time depends on it. Sums over sequences.
struct StepSize {
  int64_t rows = 0;
  int64_t pairs = 0;    // of a row and a position before it: attention
  int64_t samples = 0;  // rows whose logits are wanted

  // `count` more rows of a sequence, behind `behind` other positions.
  void Add(int count, int behind, int samples_of_them);
  void Remove(int count, int behind, int samples_of_them);
};

struct MeasuredStep {
  StepSize size = {};
  absl::Duration took;
};

// How long steps take here: a straight line in a step's work whose four
// coefficients follow the steps that were measured, whatever mixture they are
// of. A Kalman filter over factors of a first guess (R. E. Kalman, "A New
// Approach to Linear Filtering and Prediction Problems", 1960): a coefficient
// that the latest steps say nothing about keeps its value. The guess may be
// wrong by a factor of hundreds. Single-threaded.
class StepTimes {
 public:
  explicit StepTimes(const CostCoefficients& guess);

  absl::Duration Predict(const StepSize& work) const;
  // The line itself; all zero before a step was measured.
  StepCosts costs() const;

  // A step took so long. One that waited for the processor moves the line a
  // little only, unless several do in a row. Nothing happens for no work or no
  // time.
  void Observe(const StepSize& work, absl::Duration took);

 private:
  static constexpr int kTerms = 4;
  using Terms = std::array<double, kTerms>;

  // Seconds by the guess: of any step, its rows, its pairs, its samples.
  Terms TermsOf(const StepSize& work) const;
  double Sum(const Terms& terms) const;
  // What is known so far may be wrong: the next steps count in full.
  void Doubt();
  void Update(const Terms& terms, double error, double noise);

  const Terms guess_;  // seconds of one of each
  Terms factors_;
  std::array<Terms, kTerms> covariance_ = {};  // of the factors
  int observed_ = 0;   // since that was so, up to enough
  int accidents_ = 0;  // in a row
};

}  // namespace penstock
