#include <iostream>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/store_command_line.h"
#include "common/env/real/entropy.h"
#include "common/runtime/shutdown_signal.h"
#include "common/runtime/stderr_log.h"
#include "common/telemetry/prometheus/metrics_server.h"
#include "common/telemetry/prometheus/store_metrics.h"
#include "kvstore/server/store_server.h"

namespace penstock {
namespace {

constexpr absl::Duration kDrainLimit = absl::Seconds(30);

absl::StatusOr<StoreServer::Options> ServerOptions(
    const StoreOptions& options) {
  StoreServer::Options server;
  server.listen = options.listen.grpc;
  server.host.self = {options.name, DrawIncarnation()};
  ASSIGN_OR_RETURN(server.host.cluster_key,
                   ReadClusterKey(options.cluster_key_file));
  server.host.memory_bytes = options.memory_bytes;
  server.host.disk_directory = options.disk_directory;
  server.host.disk_bytes = options.disk_bytes;
  server.host.data_listen = options.data_listen;
  server.host.data_advertised_host = options.data_advertise;
  server.host.transports = {TransportKind::kShm, TransportKind::kTcp};
  if (options.transport != "auto") {
    ASSIGN_OR_RETURN(const TransportKind kind,
                     ParseTransport(options.transport));
    server.host.transports = {kind};
  }
  return server;
}

StoreMetrics::Figures FiguresOf(const StoreReport& report) {
  StoreMetrics::Figures figures;
  figures.workers = report.workers;
  figures.memory_pages = report.memory_pages;
  figures.memory_page_limit = report.memory_page_limit;
  figures.disk_pages = report.disk_pages;
  figures.disk_bytes = report.disk_bytes;
  figures.puts = report.puts;
  figures.gets = report.gets;
  figures.get_hits = report.get_hits;
  figures.bad_pages = report.bad_pages;
  figures.evicted = report.evicted;
  return figures;
}

absl::Status Run(const StoreOptions& options, ShutdownSignal& signal) {
  ASSIGN_OR_RETURN(std::unique_ptr<MetricsServer> metrics_server,
                   MetricsServer::Create(options.listen.metrics, "kvstore",
                                         PENSTOCK_VERSION));
  StoreMetrics metrics(metrics_server->registry());
  ASSIGN_OR_RETURN(StoreServer::Options server_options, ServerOptions(options));
  ASSIGN_OR_RETURN(std::unique_ptr<StoreServer> server,
                   StoreServer::Start(std::move(server_options),
                                      [&metrics](const StoreReport& report) {
                                        metrics.Observe(FiguresOf(report));
                                      }));
  // The one line of stdout: where to call, for whoever started this.
  std::cout << "{\"grpc\":\"" << server->address() << "\",\"metrics\":\""
            << metrics_server->address() << "\"}" << std::endl;
  Log(LogLevel::kInfo, "listening",
      {{"grpc", server->address()}, {"metrics", metrics_server->address()}});
  signal.Wait();
  Log(LogLevel::kInfo, "draining");
  const bool clean = server->Drain(kDrainLimit);
  server.reset();
  Log(LogLevel::kInfo, clean ? "stopped" : "stopped with pages under way");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  ShutdownSignal signal;  // before any other thread
  const auto line = ParseStoreCommandLine({argv + 1, argv + argc});
  if (!line.ok()) {
    std::cerr << "penstock-kvstore: " << line.status().message() << "\n";
    return 2;
  }
  if (line->print.has_value()) {
    std::cout << *line->print;
    return 0;
  }
  static StderrLog log("kvstore", LogLevel::kInfo);
  SetLogSink(&log);
  const absl::Status status = Run(line->options, signal);
  if (status.ok()) return 0;
  std::cerr << "penstock-kvstore: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
