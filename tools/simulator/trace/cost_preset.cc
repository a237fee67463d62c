#include "tools/simulator/trace/cost_preset.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock {
namespace {

constexpr double kGpuFlops = 312e12;
constexpr double kGpuBandwidth = 2039e9;
constexpr double kGpuMemory = 80e9;
constexpr double kComputeShare = 0.5;
constexpr double kBandwidthShare = 0.75;
constexpr double kMemoryShare = 0.9;

constexpr double kParameters = 70e9;
constexpr int kLayers = 80;
constexpr int kHeads = 64;
constexpr int kKvHeads = 8;
constexpr int kHeadDim = 128;
constexpr double kWeightBytes = 2 * kParameters;
constexpr KvLayout kLayout = {kLayers, kKvHeads, kHeadDim, kHeadDim};

constexpr double kAllReduceSeconds = 25e-6;
constexpr double kNetworkBytes = 800e9 / 8 * 0.85;

CostPreset A100(int gpus) {
  const double flops = gpus * kGpuFlops * kComputeShare;
  const double bandwidth = gpus * kGpuBandwidth * kBandwidthShare;
  const double weights = kWeightBytes / bandwidth;
  const double token = 2 * kParameters / flops;
  const double all_reduce = 2 * kLayers * kAllReduceSeconds;
  constexpr int kBatch = 256;
  const double batch = std::max(weights, kBatch * token);
  auto seconds = [](double s) { return absl::Seconds(s); };
  CostPreset preset;
  preset.name = absl::StrCat("a100x", gpus, "-70b");
  preset.layout = kLayout;
  preset.cost.prefill_fixed = seconds(all_reduce);
  preset.cost.prefill_token = seconds(token);
  preset.cost.prefill_pair = seconds(4.0 * kHeads * kHeadDim * kLayers / flops);
  preset.cost.step_fixed = seconds(weights + all_reduce);
  preset.cost.step_sequence = seconds((batch - weights) / (kBatch - 1));
  preset.cost.step_context_token =
      seconds(static_cast<double>(preset.kv_token_bytes()) / bandwidth);
  preset.cost.transfer_fixed = absl::Microseconds(100);
  preset.cost.transfer_mebibyte = seconds((1 << 20) / kNetworkBytes);
  preset.pool_blocks =
      static_cast<int>((gpus * kGpuMemory * kMemoryShare - kWeightBytes) /
                       static_cast<double>(kLayout.block_bytes()));
  preset.prefill.max_rows = preset.prefill.prefill_chunk = 2048;
  preset.decode.max_rows = 2048;
  preset.decode.prefill_chunk = 512;
  preset.decode.max_sequences = kBatch;
  return preset;
}

CostPreset SmallCpu() {
  CostPreset preset;
  preset.name = "small-cpu";
  preset.layout = {30, 3, 64, 64};  // SmolLM2-135M
  preset.pool_blocks = 4096;
  return preset;
}

CostPreset Instant() {
  CostPreset preset;
  preset.name = "instant";
  const absl::Duration zero;
  preset.cost = {zero, zero, zero, zero, zero, zero, zero, zero};
  preset.layout = {1, 1, 1, 1};
  preset.pool_blocks = 1 << 16;
  preset.prefill.max_rows = preset.prefill.prefill_chunk = 1 << 20;
  return preset;
}

std::vector<CostPreset> Presets() {
  return {A100(4), A100(8), Instant(), SmallCpu()};
}

}  // namespace

std::vector<std::string> CostPresetNames() {
  std::vector<std::string> names;
  for (const CostPreset& preset : Presets()) names.push_back(preset.name);
  return names;
}

absl::StatusOr<CostPreset> FindCostPreset(absl::string_view name) {
  for (CostPreset& preset : Presets()) {
    if (preset.name == name) return preset;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no cost preset ", name, "; there are ",
                   absl::StrJoin(CostPresetNames(), ", ")));
}

}  // namespace penstock
