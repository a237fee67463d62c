#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/model/kv_layout.h"
#include "common/runtime/load/model_loader.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/engine_bench.h"
#include "kernels/cpu/machine_limits.h"
#include "kernels/host/thread_pool.h"
#include "tools/penstock/command.h"
#include "tools/penstock/engine_report.h"
#include "tools/penstock/host_threads.h"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

// Decoding from an empty cache measures nothing that happens in service.
constexpr int kLeastDepth = 16;

struct Options {
  std::string model;
  std::string weights;
  int threads = HostThreads();
  std::vector<int> prefill = {512};
  int decode_steps = 48;
  std::vector<int> batches = {1, 8, 32};
  int depth = 0;
  int repeat = 3;
  std::string path = "auto";
  std::string kv_type = "f16";
  std::string precision = "default";
  bool json = false;
};

absl::StatusOr<CpuPath> ParsePath(const std::string& name) {
  for (CpuPath path :
       {CpuPath::kAuto, CpuPath::kScalar, CpuPath::kAvx2, CpuPath::kAvx512}) {
    if (CpuPathName(path) == name) return path;
  }
  return absl::InvalidArgumentError(absl::StrCat("--path: ", name));
}

absl::Status CheckLengths(const Options& options, const ModelSpec& spec) {
  int longest = std::max(options.depth, kLeastDepth) + options.decode_steps;
  for (int tokens : options.prefill) longest = std::max(longest, tokens);
  if (longest <= spec.context_length) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--prefill, or --depth and --decode together, come to ", longest,
      " tokens; the model's context is ", spec.context_length));
}

absl::Status BenchEngine(const Options& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ModelFile> model,
                   LoadModel({.path = options.model,
                              .weights = options.weights,
                              .threads = options.threads}));
  RETURN_IF_ERROR(CheckLengths(options, model->spec()));
  EngineBenchOptions load;
  load.prefill = options.prefill;
  load.batches = options.batches;
  load.depth = std::max(options.depth, kLeastDepth);
  load.decode_steps = options.decode_steps;
  load.repeat = options.repeat;

  ASSIGN_OR_RETURN(const KvType kv_type, ParseKvType(options.kv_type));
  const KvLayout layout = KvLayout::For(model->spec(), kv_type);
  const int64_t blocks = EngineBench::BlocksNeeded(load);
  std::vector<uint8_t> arena(blocks * layout.block_bytes());
  EngineBench bench;
  CpuBackendOptions backend_options;
  backend_options.model = model.get();
  backend_options.arena.bytes = absl::MakeSpan(arena);
  backend_options.kv_type = kv_type;
  ASSIGN_OR_RETURN(const CpuPath path, ParsePath(options.path));
  backend_options.path = path;
  ASSIGN_OR_RETURN(backend_options.precision,
                   ParsePrecision(options.precision));
  ThreadPool pool({.threads = options.threads});
  backend_options.shared_pool = &pool;
  backend_options.max_sequences =
      *std::max_element(options.batches.begin(), options.batches.end());
  backend_options.wake = bench.wake();
  ASSIGN_OR_RETURN(const std::unique_ptr<CpuBackend> backend,
                   CpuBackend::Create(std::move(backend_options)));

  // Before and after: a machine that others share is not always as fast.
  ASSIGN_OR_RETURN(const MachineLimits before,
                   MeasureMachineLimits(*FindKernels(path), pool));
  EngineReport report = {.cores = HostThreads(),
                         .threads = options.threads,
                         .backend = backend->caps().name,
                         .kv_type = options.kv_type};
  report.rows = bench.Run(*backend, blocks, load, [&](const StepPlan& plan) {
    return backend->CostOf(plan);
  });
  ASSIGN_OR_RETURN(const MachineLimits after,
                   MeasureMachineLimits(*FindKernels(path), pool));
  report.limits = Best(before, after);
  if (options.json) {
    std::cout << JsonLine(report.ToJson()) << "\n";
  } else {
    std::cout << report.ToTable();
  }
  return absl::OkStatus();
}

}  // namespace

void AddBenchEngineCommand(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "engine", "The engine alone: no scheduler, no network.");
  auto options = std::make_shared<Options>();
  command
      ->add_option("--model", options->model,
                   "GGUF file or Hugging Face folder")
      ->required();
  command->add_option("--weights", options->weights,
                      "type that matrices are stored as; default: the file's");
  command->add_option("--threads", options->threads, "compute threads")
      ->check(CLI::Range(1, 1024));
  command->add_option("--prefill", options->prefill, "prompt lengths")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--decode", options->decode_steps, "steps to decode")
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--batch", options->batches, "sequences at once")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--depth", options->depth,
                   "tokens that each sequence holds before it decodes; at "
                   "least 16 are taken")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--repeat", options->repeat, "runs; medians are printed")
      ->check(CLI::Range(1, 1000));
  command->add_option("--path", options->path, "instructions to use")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avx512"}));
  command->add_option("--kv-type", options->kv_type,
                      "elements of KV pages: f16, bf16, fp8, int8 or int4");
  command
      ->add_option("--precision", options->precision,
                   "of the inputs of matrices")
      ->check(CLI::IsMember({"fast", "default", "exact"}));
  command->add_flag("--json", options->json, "one JSON document");
  command->callback([options, &action] {
    action = [options] { return BenchEngine(*options); };
  });
}

}  // namespace penstock
