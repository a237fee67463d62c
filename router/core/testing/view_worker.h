#pragma once

#include <string>

#include "common/peer/worker_report.h"

namespace penstock {

// A worker of both roles with 1,000 blocks, for tests of the cluster's view.
inline WorkerInfo ViewWorker(const std::string& name, int layout = 1) {
  WorkerInfo info;
  info.key = {name, Incarnation(1)};
  info.roles = {true, true};
  info.control_address = name;
  info.content = ContentId(7);
  info.layout = LayoutId(layout);
  info.transports = {TransportKind::kTcp};
  info.total_blocks = 1000;
  return info;
}

}  // namespace penstock
