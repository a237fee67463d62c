#include "tests/contract/backend_makers.h"

#include <utility>

namespace penstock {
namespace {

constexpr ThreadPoolOptions kThreads = {.threads = 2, .spin = false};

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

}  // namespace penstock
