#pragma once

#include "absl/strings/string_view.h"
#include "common/peer/worker_report.h"

namespace penstock {

// main of a worker binary: options, server, SIGTERM, drain. Returns the exit
// status: 0 after a clean end, 1 when it could not start, 2 for wrong usage,
// with one clear line on stderr.
int RunWorker(absl::string_view role, WorkerRoles roles, int argc, char** argv);

}  // namespace penstock
