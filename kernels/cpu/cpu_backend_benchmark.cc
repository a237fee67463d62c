// Speed of the CPU backend on a model file:
//   kernels_cpu_cpu_backend_benchmark MODEL [threads] [path] [depth] [batches]
//                                     [KV type]
// Not a unit of Google Benchmark: a step needs a model, and medians of few runs
// say more than means of many on a shared machine.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/model/files/model_file.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/engine_bench.h"

namespace penstock {
namespace {

std::vector<int> Numbers(const std::string& list) {
  std::vector<int> numbers;
  for (absl::string_view part : absl::StrSplit(list, ',')) {
    int number = 0;
    if (absl::SimpleAtoi(part, &number)) numbers.push_back(number);
  }
  return numbers;
}

CpuPath PathOf(const std::string& name) {
  for (CpuPath path : {CpuPath::kScalar, CpuPath::kAvx2, CpuPath::kAvx512}) {
    if (CpuPathName(path) == name) return path;
  }
  return CpuPath::kAuto;
}

int Main(const std::vector<std::string>& args) {
  auto model = OpenModelFile(args[0]);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  EngineBenchOptions bench_options;
  bench_options.depth = args.size() > 3 ? std::stoi(args[3]) : 16;
  bench_options.batches =
      args.size() > 4 ? Numbers(args[4]) : std::vector<int>{1, 8, 32};
  const int64_t blocks = EngineBench::BlocksNeeded(bench_options);
  const auto kv_type = ParseKvType(args.size() > 5 ? args[5] : "f16");
  if (!kv_type.ok()) {
    std::fprintf(stderr, "%s\n", kv_type.status().ToString().c_str());
    return 1;
  }
  const KvLayout layout = KvLayout::For((*model)->spec(), *kv_type);
  std::vector<uint8_t> arena(blocks * layout.block_bytes());
  EngineBench bench;
  CpuBackendOptions options;
  options.model = model->get();
  options.kv_type = *kv_type;
  options.arena.bytes = absl::MakeSpan(arena);
  options.threads = args.size() > 1 ? std::stoi(args[1]) : 2;
  options.path = PathOf(args.size() > 2 ? args[2] : "auto");
  options.wake = bench.wake();
  auto backend = CpuBackend::Create(options);
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.status().ToString().c_str());
    return 1;
  }
  for (const EngineBenchRow& row :
       bench.Run(**backend, blocks, bench_options)) {
    std::printf("%s %s %d at depth %d: %.1f tokens/s\n",
                (*backend)->caps().name.c_str(),
                row.decode ? "decode, batch" : "prefill, tokens", row.size,
                row.depth, row.tokens_per_second);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: %s MODEL [threads] [path] [depth] [batches] "
                 "[KV type]\n",
                 argv[0]);
    return 2;
  }
  return penstock::Main(std::vector<std::string>(argv + 1, argv + argc));
}
