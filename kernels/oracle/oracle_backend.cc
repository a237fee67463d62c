#include "kernels/oracle/oracle_backend.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "kernels/host/plan_check.h"
#include "kernels/host/sampler.h"

namespace penstock {
namespace {

// Changes with every change of rounding.
constexpr NumericsId kNumerics(0x6f7261636c650001);
// Rows whose logits are held at once.
constexpr size_t kLogitRows = 16;
// How often progress is told, in layers.
constexpr int kProgressLayers = 8;

}  // namespace

absl::StatusOr<std::unique_ptr<OracleBackend>> OracleBackend::Create(
    Options options) {
  CHECK(options.model != nullptr);
  const KvLayout layout = KvLayout::For(options.model->spec(), KvType::kF32);
  const absl::Span<uint8_t> bytes = options.arena.bytes;
  if (bytes.size() < layout.block_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("arena: ", bytes.size(), " bytes hold no KV block of ",
                     layout.block_bytes(), " bytes; give more KV memory"));
  }
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) != 0) {
    return absl::InvalidArgumentError("arena: not aligned for F32 pages");
  }
  if (options.max_rows <= 0 || options.max_sequences <= 0 ||
      options.compute_threads.threads <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "max_rows, max_sequences and threads must be positive, not ",
        options.max_rows, ", ", options.max_sequences, " and ",
        options.compute_threads.threads));
  }
  return std::unique_ptr<OracleBackend>(new OracleBackend(std::move(options)));
}

OracleBackend::OracleBackend(Options options)
    : spec_(options.model->spec()),
      weights_(LoadOracleWeights(*options.model)),
      layout_(KvLayout::For(spec_, KvType::kF32)),
      arena_blocks_(options.arena.bytes.size() / layout_.block_bytes()),
      caps_({.name = "oracle",
             .numerics = kNumerics,
             .batch_invariant = true,
             .max_rows = options.max_rows,
             .max_sequences = options.max_sequences,
             .layer_progress = true}),
      pool_(options.compute_threads),
      forward_({.spec = &spec_,
                .weights = &weights_,
                .pages = OraclePages(options.arena, layout_),
                .pool = &pool_,
                .observer = std::move(options.observer)}),
      runner_({.run =
                   [this](const StepPlan& plan,
                          const StepRunner::Progress& progress) {
                     return RunStep(plan, progress);
                   },
               .wake = std::move(options.wake)}) {}

void OracleBackend::Submit(StepPlan plan) {
  CheckPlan(plan, {.max_rows = caps_.max_rows,
                   .max_sequences = caps_.max_sequences,
                   .vocab_size = spec_.vocab_size,
                   .arena_blocks = arena_blocks_});
  runner_.Submit(std::move(plan));
}

StepResult OracleBackend::RunStep(const StepPlan& plan,
                                  const StepRunner::Progress& progress) {
  forward_.Run(plan, [&](int layers_done) {
    if (layers_done % kProgressLayers == 0 || layers_done == spec_.layers) {
      progress(layers_done);
    }
  });
  StepResult result;
  result.sampled.resize(plan.samples.size());
  result.scored.resize(plan.scores.size());
  const size_t uses = plan.samples.size() + plan.scores.size();
  for (size_t first = 0; first < uses && result.status.ok();
       first += kLogitRows) {
    const size_t count = std::min(kLogitRows, uses - first);
    result.status = UseLogits(plan, first, count, result);
  }
  if (!result.status.ok()) {
    result.sampled.clear();
    result.scored.clear();
  }
  return result;
}

absl::Status OracleBackend::UseLogits(const StepPlan& plan, size_t first,
                                      size_t count, StepResult& result) {
  const size_t samples = plan.samples.size();
  std::vector<int32_t> rows;
  for (size_t use = first; use < first + count; ++use) {
    rows.push_back(use < samples ? plan.samples[use].row
                                 : plan.scores[use - samples].row);
  }
  const absl::Span<const float> logits = forward_.Logits(rows);
  std::vector<absl::Status> statuses(count);
  pool_.Run([&](int thread, int threads) {
    Sampler sampler;
    for (size_t i = thread; i < count; i += threads) {
      statuses[i] = penstock::UseLogits(
          plan, first + i,
          logits.subspan(i * spec_.vocab_size, spec_.vocab_size), sampler,
          result);
    }
  });
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace penstock
