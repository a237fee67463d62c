#include "tests/contract/backend_makers.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"

namespace penstock {
namespace {

// Two, so that the work is shared; no spinning, because tests share cores.
constexpr ThreadPoolOptions kThreads = {.threads = 2, .spin = false};

BackendMaker MakeCpuWith(CpuPath path, int threads, InputPrecision precision,
                         KvType type = KvType::kF16) {
  std::string name = absl::StrCat("cpu_", CpuPathName(path));
  if (type != KvType::kF16) absl::StrAppend(&name, "_", Traits(type).name);
  return {.name = std::move(name),
          .kv_type = type,
          .make = [=](const BackendMaker::Setup& setup) {
            CpuBackendOptions options;
            options.model = setup.model;
            options.kv_type = type;
            options.arena = setup.arena;
            options.wake = setup.wake;
            options.max_rows = setup.max_rows;
            options.max_sequences = setup.max_sequences;
            options.threads = threads;
            options.spin = kThreads.spin;
            options.path = path;
            options.precision = precision;
            return CpuBackend::Create(std::move(options));
          }};
}

}  // namespace

BackendMaker MakeOracle(OracleObserver observer) {
  return {.name = "oracle",
          .kv_type = KvType::kF32,
          .make = [observer](const BackendMaker::Setup& setup)
              -> absl::StatusOr<std::unique_ptr<Backend>> {
            return OracleBackend::Create({.model = setup.model,
                                          .arena = setup.arena,
                                          .wake = setup.wake,
                                          .max_rows = setup.max_rows,
                                          .max_sequences = setup.max_sequences,
                                          .compute_threads = kThreads,
                                          .observer = observer});
          }};
}

BackendMaker MakeCpu(CpuPath path) {
  return MakeCpuWith(path, kThreads.threads, InputPrecision());
}

BackendMaker MakeCpuKeeping(KvType type, CpuPath path) {
  return MakeCpuWith(path, kThreads.threads, InputPrecision(), type);
}

BackendMaker MakeCpuOf(const InputPrecision& precision) {
  return MakeCpuWith(CpuPath::kAuto, kThreads.threads, precision);
}

std::vector<KvType> SmallerKvTypes() {
  return {KvType::kBf16, KvType::kFp8, KvType::kInt8, KvType::kInt4};
}

BackendMaker MakeExactCpu(CpuPath path, int threads) {
  return MakeCpuWith(path, threads, InputPrecision::Exact());
}

std::vector<CpuPath> CpuPaths() {
  std::vector<CpuPath> paths = {CpuPath::kScalar};
  for (CpuPath path :
       {CpuPath::kAvx2, CpuPath::kAvx512, CpuPath::kAvx512Bf16}) {
    if (FindKernels(path) != nullptr) paths.push_back(path);
  }
  return paths;
}

std::vector<BackendMaker> AllBackends() {
  std::vector<BackendMaker> makers = {MakeOracle()};
  for (CpuPath path : CpuPaths()) makers.push_back(MakeCpu(path));
  return makers;
}

}  // namespace penstock
