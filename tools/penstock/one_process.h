#pragma once

#include "absl/status/status.h"
#include "tools/penstock/cluster_options.h"

namespace penstock {

// A router and one worker of both roles in this process: KV changes hands by
// reference. Returns after a drain that SIGINT or SIGTERM asked for, or the
// reason when it could not start. Main thread, before any other thread exists.
absl::Status RunInOneProcess(const ClusterOptions& options);

}  // namespace penstock
