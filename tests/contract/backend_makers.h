#pragma once

#include <vector>

#include "kernels/cpu/cpu_model.h"
#include "kernels/cpu/cpu_path.h"
#include "kernels/oracle/oracle_backend.h"
#include "tests/contract/model_driver.h"

namespace penstock {

// The float reference, with a test's view of its insides.
BackendMaker MakeOracle(OracleObserver observer = {});

// Quantised activations, on one set of instructions.
BackendMaker MakeCpu(CpuPath path);

// The same with KV of any type but F32.
BackendMaker MakeCpuKeeping(KvType type, CpuPath path = CpuPath::kAuto);
// The types beside F16 that it takes.
std::vector<KvType> SmallerKvTypes();

// The same with inputs of that precision.
BackendMaker MakeCpuOf(const InputPrecision& precision);

// The same as exact as F16 pages allow.
BackendMaker MakeExactCpu(CpuPath path, int threads);

// The paths that this machine has, the scalar one first.
std::vector<CpuPath> CpuPaths();

// All backends that this machine can run, the oracle first.
std::vector<BackendMaker> AllBackends();

}  // namespace penstock
