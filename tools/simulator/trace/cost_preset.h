#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cost/cost_model.h"
#include "common/engine/engine_loop.h"
#include "common/model/kv_layout.h"

namespace penstock {

// A machine and model as the simulator knows them.
struct CostPreset {
  std::string name;
  CostCoefficients cost;
  KvLayout layout;
  int pool_blocks = 0;  // KV blocks of one worker
  EngineOptions prefill, decode;

  int64_t kv_token_bytes() const {
    return static_cast<int64_t>(layout.block_bytes()) / kBlockTokens;
  }
};

// "a100x4-70b", "a100x8-70b": a dense 70B model in fp16 (80 layers, 8 KV heads
// of 128: 320 KiB of KV for each token) on one worker of 4 or 8 A100-80G, from
// the data sheet's 312 TFLOP/s and 2039 GB/s a GPU:
//   weights   140 GB, read in each step at 75% of the bandwidth
//   all-reduce  2 for each layer, 25 us each: 4 ms a step
//   token     140 GFLOP at 50% of the peak
//   pair      4 x 64 heads x 128 x 80 layers FLOP of attention, at 50%
//   context   320 KiB read at 75% of the bandwidth
//   sequence  the line through a batch of 1, bound by the weights' bytes, and
//             one of 256, bound by its arithmetic
//   transfer  800 Gbit/s of RDMA at 85%
//   pool      90% of the memory less the weights
// "small-cpu": CostCoefficients' defaults, a 135M model on two CPU cores.
// "instant": nothing takes time; what is left is the order of things.
// INVALID_ARGUMENT lists the names.
absl::StatusOr<CostPreset> FindCostPreset(absl::string_view name);

std::vector<std::string> CostPresetNames();

}  // namespace penstock
