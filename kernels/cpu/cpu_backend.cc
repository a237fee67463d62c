#include "kernels/cpu/cpu_backend.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "kernels/host/plan_check.h"

namespace penstock {
namespace {

// FNV-1a: the same in every process and build.
NumericsId IdOf(absl::string_view description) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : description) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
  return NumericsId(hash);
}

// Everything that decides a bit of a logit. All paths give the same.
std::string DescribeNumerics(const CpuBackendOptions& options) {
  const InputPrecision& precision = options.precision;
  return absl::StrCat("cpu/2 split=", kAttentionSplit, " block=", kScaleDepth,
                      " kv=", Traits(options.kv_type).name,
                      " refine=", precision.refine_one_in,
                      " bf16=", precision.bfloats ? "bf16" : "f32");
}

absl::Status CheckOptions(const CpuBackendOptions& options,
                          const KvLayout& layout) {
  auto invalid = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("CPU backend: ", what));
  };
  if (options.shared_pool == nullptr && options.threads < 1) {
    return invalid(absl::StrCat("threads is ", options.threads));
  }
  if (options.max_rows < 1 || options.max_rows > (1 << 20)) {
    return invalid(absl::StrCat("max_rows is ", options.max_rows));
  }
  if (options.max_sequences < 1) {
    return invalid(absl::StrCat("max_sequences is ", options.max_sequences));
  }
  if (options.kv_type == KvType::kF32) {
    return invalid("kv_type is f32, which the oracle alone keeps; use f16");
  }
  if (options.arena.bytes.size() < layout.block_bytes()) {
    return invalid(absl::StrCat("the arena has ", options.arena.bytes.size(),
                                " bytes, one block takes ",
                                layout.block_bytes()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CpuBackend>> CpuBackend::Create(
    CpuBackendOptions options) {
  std::unique_ptr<CpuBackend> backend(new CpuBackend(std::move(options)));
  const CpuBackendOptions& checked = backend->options_;
  RETURN_IF_ERROR(CheckOptions(checked, backend->layout_));
  const KernelTable* kernels = FindKernels(checked.path);
  if (kernels == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("this machine lacks the instructions of CPU path ",
                     CpuPathName(checked.path), "; use auto"));
  }
  backend->pool_ = checked.shared_pool;
  if (backend->pool_ == nullptr) {
    backend->own_pool_ = std::make_unique<ThreadPool>(
        ThreadPoolOptions{.threads = checked.threads, .spin = checked.spin});
    backend->pool_ = backend->own_pool_.get();
  }
  ASSIGN_OR_RETURN(backend->model_,
                   CpuModel::Create(checked.model, checked.precision,
                                    backend->pool_, checked.weights_cache));
  ASSIGN_OR_RETURN(backend->pass_,
                   ForwardPass::Create({.model = backend->model_.get(),
                                        .kernels = kernels,
                                        .pool = backend->pool_,
                                        .arena = checked.arena,
                                        .layout = backend->layout_,
                                        .max_rows = checked.max_rows}));
  backend->samplers_.resize(backend->pool_->threads());
  backend->caps_ = {.name = absl::StrCat("cpu-", kernels->name),
                    .numerics = IdOf(DescribeNumerics(checked)),
                    .batch_invariant = true,
                    .max_rows = checked.max_rows,
                    .max_sequences = checked.max_sequences};
  backend->runner_ = std::make_unique<StepRunner>(StepRunner::Options{
      .run = [self = backend.get()](
                 const StepPlan& plan,
                 const StepRunner::Progress&) { return self->RunStep(plan); },
      .wake = checked.wake});
  return backend;
}

CpuBackend::CpuBackend(CpuBackendOptions options)
    : options_(std::move(options)),
      layout_(KvLayout::For(options_.model->spec(), options_.kv_type)) {}

void CpuBackend::Submit(StepPlan plan) {
  CheckPlan(plan, {.max_rows = options_.max_rows,
                   .max_sequences = options_.max_sequences,
                   .vocab_size = options_.model->spec().vocab_size,
                   .arena_blocks = static_cast<int64_t>(
                       options_.arena.bytes.size() / layout_.block_bytes())});
  runner_->Submit(std::move(plan));
}

std::optional<BackendEvent> CpuBackend::Poll() { return runner_->Poll(); }

StepResult CpuBackend::RunStep(const StepPlan& plan) {
  StepResult result;
  result.step = plan.step;
  result.sampled.resize(plan.samples.size());
  result.scored.resize(plan.scores.size());
  // Each use has its own place, so threads do not meet.
  std::vector<absl::Status> statuses(plan.samples.size() + plan.scores.size());
  pass_->Run(plan, [&](int thread, int use, absl::Span<const float> logits) {
    statuses[use] = UseLogits(plan, use, logits, samplers_[thread], result);
  });
  for (absl::Status& status : statuses) result.status.Update(status);
  return result;
}

}  // namespace penstock
