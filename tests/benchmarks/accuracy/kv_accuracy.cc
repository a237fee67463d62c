// What each type of KV costs in accuracy on a model file:
//   kv_accuracy MODEL.gguf
#include <cstdio>
#include <string>

#include "common/model/files/model_file.h"
#include "tests/benchmarks/accuracy/accuracy.h"
#include "tests/contract/backend_makers.h"

namespace penstock {
namespace {

void Measure(const BackendMaker& maker, const ModelFile& model) {
  const Accuracy accuracy = MeasureAccuracy(maker, model, RealCases());
  std::printf("| %s | %.0f | %.4f | %s |\n", Traits(accuracy.kv_type).name,
              accuracy.block_bytes / kBlockTokens, accuracy.perplexity,
              accuracy.Columns().c_str());
  std::fflush(stdout);
}

int Main(const std::string& path) {
  auto model = OpenModelFile(path);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    return 1;
  }
  std::printf(
      "| KV | bytes a token | perplexity | greedy steps | whole answers | "
      "top-5 error |\n|---|---|---|---|---|---|\n");
  std::printf("| all in f32 | | %.4f | | | |\n", OraclePerplexity(RealCases()));
  Measure(MakeCpu(CpuPath::kAuto), **model);
  for (KvType type : SmallerKvTypes()) {
    Measure(MakeCpuKeeping(type), **model);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kv_accuracy MODEL.gguf\n");
    return 2;
  }
  return penstock::Main(argv[1]);
}
