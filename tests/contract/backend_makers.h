#pragma once

#include "kernels/oracle/oracle_backend.h"
#include "tests/contract/model_driver.h"

namespace penstock {

// The backends that the contract suites run over.
BackendMaker MakeOracle(OracleObserver observer = {});

}  // namespace penstock
