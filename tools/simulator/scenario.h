#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {

// What one run of a scenario showed.
struct ScenarioResult {
  // Empty, or how it differed from what is expected: the promise or the value,
  // and when.
  std::string failure;
  std::string measured;          // the values behind `expected`, in words
  std::vector<std::string> log;  // every event: SimCluster::log()
  uint64_t log_hash = 0;         // SimCluster::LogHash()
};

// One fault of the field, as a run on a simulated cluster with the value that
// has to come out. Equal seeds give equal logs.
struct Scenario {
  absl::string_view name;      // "late-write-after-cancel"
  std::vector<int> rows;       // of the table in docs/reliability.md
  absl::string_view symptom;   // one line: what is seen where this goes wrong
  absl::string_view expected;  // the right behaviour, in words and numbers
  ScenarioResult (*run)(uint64_t seed) = nullptr;
};

// All of them, in order of their first row; names are unique.
const std::vector<Scenario>& Scenarios();

}  // namespace penstock
