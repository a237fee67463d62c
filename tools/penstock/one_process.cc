#include "tools/penstock/one_process.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/command_line.h"
#include "common/env/real/monotonic_clock.h"
#include "common/model/files/model_path.h"
#include "common/runtime/shutdown_signal.h"
#include "common/runtime/stderr_log.h"
#include "common/telemetry/prometheus/http_metrics.h"
#include "common/telemetry/prometheus/metrics_server.h"
#include "common/telemetry/prometheus/router_metrics.h"
#include "common/worker/server/worker_server.h"
#include "router/server/router_server.h"
#include "tools/penstock/client.h"
#include "tools/penstock/cluster_report.h"

namespace penstock {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);

std::string ModelName(const ClusterOptions& options) {
  if (!options.model_name.empty()) return options.model_name;
  return ModelNameOf(options.model);
}

RouterOptions ForRouter(const ClusterOptions& options, int key_fd) {
  RouterOptions router;
  router.model = options.model;
  router.model_name = ModelName(options);
  router.weights = options.weights;
  router.kv_type = options.kv_type;
  router.listen = {options.grpc, options.metrics, options.http};
  router.cluster_key_file = KeyPath(key_fd);
  if (options.local_prefill_tokens) {
    router.local_prefill_tokens = *options.local_prefill_tokens;
  }
  if (options.policy) router.policy = *options.policy;
  return router;
}

absl::StatusOr<WorkerOptions> ForWorker(const ClusterOptions& options,
                                        const std::string& router, int key_fd) {
  WorkerOptions worker;
  worker.model = options.model;
  worker.model_name = ModelName(options);
  worker.weights = options.weights;
  worker.kv_type = options.kv_type;
  worker.cluster_key_file = KeyPath(key_fd);
  worker.name = "worker-0";
  worker.routers = {router};
  ASSIGN_OR_RETURN(worker.kv_memory_bytes,
                   ParseSize("kv-memory", options.kv_memory));
  if (!options.kv_host_memory.empty()) {
    ASSIGN_OR_RETURN(worker.kv_host_memory_bytes,
                     ParseSize("kv-host-memory", options.kv_host_memory));
  }
  worker.kv_disk = options.kv_disk;
  if (!options.kv_disk_bytes.empty()) {
    ASSIGN_OR_RETURN(worker.kv_disk_bytes,
                     ParseSize("kv-disk-bytes", options.kv_disk_bytes));
  }
  worker.kvstore = options.kvstore;
  worker.weights_cache = options.weights_cache;
  worker.precision = options.precision;
  worker.threads = options.threads;
  if (options.itl_target_ms) {
    worker.itl_target = absl::Milliseconds(*options.itl_target_ms);
  }
  worker.backend = options.backend;
  worker.transport = options.transport;
  return worker;
}

// OK when serving, CANCELLED after a signal.
absl::Status WaitUntilServing(const std::string& router,
                              const ClusterOptions& options,
                              ShutdownSignal& signal) {
  Client client(router);
  const absl::Time deadline =
      absl::Now() + absl::Seconds(options.start_timeout_seconds);
  while (!IsServing(client, 1, 1)) {
    if (signal.WaitFor(kTick) != 0) return absl::CancelledError("interrupted");
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("not ready after ", options.start_timeout_seconds,
                       " s; --start-timeout gives it longer"));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const ClusterOptions& options, int key_fd,
                 ShutdownSignal& signal) {
  MonotonicClock clock;
  const RouterOptions router_options = ForRouter(options, key_fd);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<MetricsServer> metrics_server,
      MetricsServer::Create(options.metrics, "router", PENSTOCK_VERSION));
  RouterMetrics metrics(router_options.model_name, metrics_server->registry());
  HttpMetrics http_metrics(metrics_server->registry());
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterServer> router,
                   RouterServer::Start(router_options, clock, &metrics,
                                       {&http_metrics, [&metrics_server] {
                                          return metrics_server->Render();
                                        }}));
  ASSIGN_OR_RETURN(const WorkerOptions worker_options,
                   ForWorker(options, router->address(), key_fd));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<WorkerServer> worker,
      WorkerServer::Start(worker_options, {.prefill = true, .decode = true}));

  absl::Status status = WaitUntilServing(router->address(), options, signal);
  if (status.ok()) {
    ReportReady(options, {{"router", "router", getpid(), router->address(),
                           metrics_server->address(), router->http_address()},
                          {worker_options.name, "worker", getpid(),
                           worker->address(), worker->metrics_address()}});
    signal.Wait();
  }
  // The router first: it lets running requests end, which needs the worker.
  const absl::Duration patience = absl::Seconds(options.drain_timeout_seconds);
  router->Stop(patience,
               [&signal] { return signal.WaitFor(absl::ZeroDuration()) != 0; });
  worker->Drain(patience);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

}  // namespace

absl::Status RunInOneProcess(const ClusterOptions& options) {
  if (!options.router_config.empty()) {
    return absl::InvalidArgumentError(
        "--router-config is for a router of its own; leave it out, or "
        "--one-process");
  }
  if (options.kvstore == ClusterOptions::kOwnStore) {
    return absl::InvalidArgumentError(
        "--kvstore starts a process of its own; give it the host:port of one "
        "that runs, or leave out --one-process");
  }
  if (options.prefill != 1 || options.decode != 1) {
    return absl::InvalidArgumentError(
        "--one-process runs one worker of both kinds; leave out --prefill and "
        "--decode, or --one-process");
  }
  ASSIGN_OR_RETURN(const int key_fd, OpenClusterKey(options));
  ShutdownSignal signal;  // before any other thread
  StderrLog log("up", LogLevel::kInfo);
  SetLogSink(&log);
  const absl::Status status = Run(options, key_fd, signal);
  close(key_fd);
  SetLogSink(nullptr);
  return status;
}

}  // namespace penstock
