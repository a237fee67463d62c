#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/env/clock.h"
#include "router/bench/contested_index.h"
#include "router/bench/index_workload.h"

namespace penstock {

// One thing that is measured of several indices.
struct BenchRow {
  std::string what;
  std::string unit;
  double target = 0;  // 0: none
  bool more_is_better = true;
  std::map<std::string, double> of;  // by the index's name
};

// Measures one index after the other under the same load. The indices' answers
// are compared: a wrong one aborts. Single-threaded.
class IndexBench {
 public:
  using Maker = std::function<std::unique_ptr<ContestedIndex>()>;

  // `time`: of each measurement, about.
  IndexBench(const IndexWorkload& workload, const Clock& clock,
             absl::Duration time)
      : workload_(workload), clock_(clock), time_(time) {}

  // Measures what `make` makes, from empty to the death of workers.
  void Measure(const Maker& make);

  // In a fixed order.
  const std::vector<BenchRow>& rows() const { return rows_; }

 private:
  // So many units of `units_each` a second, over calls of `act(i)`.
  double Rate(double units_each, const std::function<void(size_t)>& act) const;
  double Seconds(Instant since) const;

  void Fill(ContestedIndex& index);
  void Lookups(ContestedIndex& index);
  void HotLookups(ContestedIndex& index);
  void Decisions(ContestedIndex& index);
  void Churn(ContestedIndex& index);
  void Deaths(ContestedIndex& index);
  void Report(absl::string_view what, absl::string_view unit, double target,
              bool more_is_better, const ContestedIndex& index, double value);

  const IndexWorkload& workload_;
  const Clock& clock_;
  absl::Duration time_;
  std::vector<BenchRow> rows_;
  // What the first index said: sums of depths, by measurement.
  std::map<std::string, int64_t> answers_;
  void Agree(const std::string& what, int64_t sum);
};

}  // namespace penstock
