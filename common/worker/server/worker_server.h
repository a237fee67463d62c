#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/options.h"
#include "common/env/real/monotonic_clock.h"
#include "common/rpc/server.h"
#include "common/runtime/loop_thread.h"
#include "common/telemetry/prometheus/metrics_server.h"
#include "common/telemetry/prometheus/worker_metrics.h"
#include "common/worker/host/worker_host.h"
#include "common/worker/server/router_link.h"
#include "common/worker/server/rpc_peers.h"

namespace penstock {

// A whole worker process: host, gRPC services, registration and metrics. Owned
// by main. Ports are taken first, so that a taken one is an error before the
// model is loaded; health says NOT_SERVING until the worker is ready.
class WorkerServer {
 public:
  static absl::StatusOr<std::unique_ptr<WorkerServer>> Start(
      const WorkerOptions& options, WorkerRoles roles);
  ~WorkerServer();

  // Refuses new work and waits for the running one, at most `limit`; true when
  // everything had ended.
  bool Drain(absl::Duration limit);

  const std::string& address() const { return server_->address(); }
  const std::string& metrics_address() const { return metrics_->address(); }
  const WorkerKey& self() const { return self_; }

 private:
  WorkerServer(const WorkerOptions& options, WorkerRoles roles);
  absl::Status StartServer();
  absl::Status LoadHost();
  StreamMethod LegMethod(LegKind kind);
  void Tick();
  void Observe();
  void ReportToRouters();
  WorkerHostOptions HostOptions(std::string cluster_key) const;
  absl::StatusOr<std::unique_ptr<KvTier>> MakeStoreTier(
      const TierWorker& worker, std::vector<TransportKind> transports);

  const WorkerOptions options_;
  const WorkerRoles roles_;
  const std::string role_;
  const WorkerKey self_;
  MonotonicClock clock_;
  LoopThread loop_;
  std::unique_ptr<MetricsServer> metrics_;
  std::unique_ptr<WorkerMetrics> worker_metrics_;
  std::unique_ptr<RpcServer> server_;

  // On the loop, once loaded.
  RpcPeers peers_;
  std::unique_ptr<WorkerHost> host_;
  std::vector<std::unique_ptr<RouterLink>> routers_;

  std::mutex mutex_;
  std::condition_variable drained_changed_;
  bool drained_ = false;   // guarded by mutex_
  bool draining_ = false;  // the loop's
};

}  // namespace penstock
