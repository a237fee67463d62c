#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/engine_bench.h"
#include "kernels/cpu/machine_limits.h"
#include "nlohmann/json.hpp"

namespace penstock {

// What `penstock bench engine` measured.
struct EngineReport {
  int cores = 0;
  int threads = 0;
  std::string backend;
  std::string kv_type;
  MachineLimits limits = {};  // of the threads
  std::vector<EngineBenchRow> rows = {};

  // A share of the limit is the least time that the work can take, over the
  // time that it took: 1 is all that the machine can. Bytes are packed weights,
  // once a step, and KV; operations are multiplications and additions.
  nlohmann::json ToJson() const;
  std::string ToTable() const;
};

}  // namespace penstock
