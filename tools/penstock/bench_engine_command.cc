#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/model/kv_layout.h"
#include "common/runtime/load/model_loader.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/engine_bench.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/command.h"
#include "tools/penstock/json_line.h"
#include "tools/penstock/machine_limits.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

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
  bool json = false;
};

// What one pass of the model has to move and to compute.
struct ModelWork {
  double weight_bytes = 0;     // that a decode step reads, whatever its batch
  double body_operations = 0;  // of one token, without the output head
  double head_operations = 0;  // of one sampled token
};

ModelWork WorkOf(const ModelFile& file) {
  ModelWork work;
  auto operations = [](const TensorView& matrix) {
    return 2.0 * static_cast<double>(matrix.rows() * matrix.cols());
  };
  const ModelWeights& weights = file.weights();
  for (const LayerWeights& layer : weights.layers) {
    for (const TensorView* matrix : {&layer.q, &layer.k, &layer.v, &layer.o,
                                     &layer.gate, &layer.up, &layer.down}) {
      work.weight_bytes += static_cast<double>(matrix->data.size());
      work.body_operations += operations(*matrix);
    }
  }
  work.weight_bytes += static_cast<double>(weights.output.data.size());
  work.head_operations = operations(weights.output);
  return work;
}

absl::StatusOr<CpuPath> ParsePath(const std::string& name) {
  for (CpuPath path :
       {CpuPath::kAuto, CpuPath::kScalar, CpuPath::kAvx2, CpuPath::kAvx512}) {
    if (CpuPathName(path) == name) return path;
  }
  return absl::InvalidArgumentError(absl::StrCat("--path: ", name));
}

Json DescribePrefill(const EngineBenchRow& row, const ModelWork& work) {
  const double operations = work.body_operations * row.size +
                            work.head_operations;  // the last token's alone
  return {{"tokens", row.size},
          {"depth", row.depth},
          {"tokens_per_s", row.tokens_per_second},
          {"operations", operations},
          {"operations_per_s", operations * row.tokens_per_second / row.size}};
}

Json DescribeDecode(const EngineBenchRow& row, int depth,
                    const KvLayout& layout, int steps, const ModelWork& work,
                    double read_limit) {
  // KV of each sequence, at the depth halfway through the run.
  const double kv_bytes = row.size * (row.depth + steps / 2.0) *
                          static_cast<double>(layout.block_bytes()) /
                          kBlockTokens;
  const double bytes = work.weight_bytes + kv_bytes;
  const double steps_per_second = row.tokens_per_second / row.size;
  return {{"batch", row.size},
          {"depth", depth},
          {"tokens_per_s", row.tokens_per_second},
          {"bytes_per_step", bytes},
          {"operations_per_step",
           row.size * (work.body_operations + work.head_operations)},
          {"bytes_per_s", bytes * steps_per_second},
          {"share_of_read_limit", bytes * steps_per_second / read_limit}};
}

void PrintTable(const Json& document) {
  const Json& machine = document["machine"];
  std::cout << absl::StrFormat("%s, KV in %s, %d threads, reads %.1f GB/s\n\n",
                               machine["backend"].get<std::string>(),
                               machine["kv_type"].get<std::string>(),
                               document["threads"].get<int>(),
                               machine["read_bytes_per_s"].get<double>() / 1e9);
  for (const Json& row : document["prefill"]) {
    std::cout << absl::StrFormat(
        "prefill %5d tokens   %8.1f tokens/s   %6.1f G operations/s\n",
        row["tokens"].get<int>(), row["tokens_per_s"].get<double>(),
        row["operations_per_s"].get<double>() / 1e9);
  }
  for (const Json& row : document["decode"]) {
    std::cout << absl::StrFormat(
        "decode  %5d at once   %8.1f tokens/s   %6.1f GB/s, %.0f%% of what the "
        "machine reads\n",
        row["batch"].get<int>(), row["tokens_per_s"].get<double>(),
        row["bytes_per_s"].get<double>() / 1e9,
        row["share_of_read_limit"].get<double>() * 100);
  }
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
  backend_options.threads = options.threads;
  ASSIGN_OR_RETURN(backend_options.path, ParsePath(options.path));
  backend_options.max_sequences =
      *std::max_element(options.batches.begin(), options.batches.end());
  backend_options.wake = bench.wake();
  ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                   CpuBackend::Create(std::move(backend_options)));

  const double read_limit = MeasureReadBandwidth(options.threads);
  const ModelWork work = WorkOf(*model);
  Json document = {{"threads", options.threads},
                   {"prefill", Json::array()},
                   {"decode", Json::array()},
                   {"machine",
                    {{"cores", HostThreads()},
                     {"backend", backend->caps().name},
                     {"kv_type", options.kv_type},
                     {"read_bytes_per_s", read_limit}}}};
  for (const EngineBenchRow& row : bench.Run(*backend, blocks, load)) {
    if (row.decode) {
      document["decode"].push_back(DescribeDecode(
          row, options.depth, layout, options.decode_steps, work, read_limit));
    } else {
      document["prefill"].push_back(DescribePrefill(row, work));
    }
  }
  if (options.json) {
    std::cout << JsonLine(document) << "\n";
  } else {
    PrintTable(document);
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
  command->add_flag("--json", options->json, "one JSON document");
  command->callback([options, &action] {
    action = [options] { return BenchEngine(*options); };
  });
}

}  // namespace penstock
