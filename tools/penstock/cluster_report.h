#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/penstock/client.h"
#include "tools/penstock/cluster_options.h"

namespace penstock {

// One server of a running cluster.
struct RunningServer {
  std::string name;
  std::string role;
  pid_t pid = 0;
  std::string grpc;
  std::string metrics;
  std::string http = {};  // a router's; empty: none
};

// Tells on stdout that everything is ready: addresses, a copyable call and
// what fits, or the same as one JSON document. `servers` begins with the
// routers.
void ReportReady(const ClusterOptions& options,
                 const std::vector<RunningServer>& servers);

// Whether the router has at least so many ready workers of each kind.
bool IsServing(Client& router, int prefill, int decode);

// A descriptor of the cluster's key, never in arguments: of the file that the
// options name, or that lies beside what their disk keeps, made if missing and
// for its owner alone; without either, of memory that holds a new random one.
// KeyPath names it for a process that has it as `fd`.
absl::StatusOr<int> OpenClusterKey(const ClusterOptions& options);
std::string KeyPath(int fd);

}  // namespace penstock
