#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock {

// What the command line of a mutation driver says:
//   DRIVER --seed 1 --inputs 1000000 --min-hits 100
struct MutationOptions {
  uint64_t seed = 1;
  uint64_t inputs = 100000;
  uint64_t min_hits = 1;
};

// Nothing, once the usage is printed, when an argument is wrong: exit with 2.
std::optional<MutationOptions> ParseMutationOptions(int argc, char** argv);

// How often each outcome of a run came up. An outcome that no input reaches is
// not tested by the run.
class MutationReport {
 public:
  void Count(absl::string_view outcome) { ++hits_[std::string(outcome)]; }
  // As "what OK", "what INVALID_ARGUMENT", ...
  void Count(absl::string_view what, const absl::Status& status);

  // Prints the hits of each of `outcomes`; the program's exit status: 1 when
  // one came up fewer than `min_hits` times.
  int Print(const std::vector<absl::string_view>& outcomes,
            uint64_t min_hits) const;

 private:
  std::map<std::string, uint64_t, std::less<>> hits_;
};

}  // namespace penstock
