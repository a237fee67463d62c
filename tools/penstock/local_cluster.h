#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/penstock/cluster_options.h"
#include "tools/penstock/process_group.h"
#include "tools/penstock/restart_pause.h"

namespace penstock {

// Routers, KV store, prefill and decode workers as children of this process:
// started in order, watched, and drained in order. A server that ends is
// started again at the address that it had; a worker elsewhere when it could
// not listen there. Used once, by the main thread.
class LocalCluster {
 public:
  explicit LocalCluster(const ClusterOptions& options);
  ~LocalCluster();

  // Returns OK after a drain that a signal asked for, and the reason when the
  // cluster could not start.
  absl::Status Run();

 private:
  struct Server {
    ProcessGroup::Member* member = nullptr;
    std::string role;
    std::string grpc;     // as announced
    std::string metrics;  // as announced
    std::string http;     // as announced; empty: none
    absl::Time started;
    RestartPause pause;
    absl::Time restart_at = absl::InfiniteFuture();  // it has ended before
  };

  absl::Status StartAll();
  absl::Status StartStore();
  absl::Status StartWorkers(const std::string& role, int count);
  // The first listens where the options say, the others at free ports.
  std::vector<std::string> RouterArguments(int router) const;
  std::vector<std::string> WorkerArguments(const std::string& name) const;
  // Of a server that has the model.
  std::vector<std::string> ModelArguments() const;
  // Where workers find the memfd; empty: there is none.
  std::string LedgerPath() const;
  // Starts one server and waits until it says where it listens.
  absl::Status StartServer(const std::string& role, const std::string& name,
                           std::vector<std::string> arguments);
  // From what the server announced. False: it has not said where it listens.
  static bool TakeAddresses(Server& server);
  absl::Status WaitUntilServing();
  void Report() const;
  // Until a signal asks to stop.
  absl::Status Watch();
  // Starts servers again whose pause is over; plans it for those that have
  // just ended. Returns when to call again, unless another ends before.
  absl::Time RestartServers();
  static std::vector<std::string> ArgumentsAgain(Server& server);
  void Stop();
  void StopServers(bool routers);

  const ClusterOptions options_;
  ProcessGroup group_;
  std::string directory_;        // of the server binaries
  int key_fd_ = -1;              // a memfd with the cluster key
  int ledger_fd_ = -1;           // a memfd for --core-ledger; -1: none
  std::string store_;            // "host:port" for workers; empty: none
  std::vector<Server> servers_;  // routers are the first
};

}  // namespace penstock
