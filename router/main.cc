#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/command_line.h"
#include "common/env/real/monotonic_clock.h"
#include "common/runtime/shutdown_signal.h"
#include "common/runtime/stderr_log.h"
#include "common/telemetry/prometheus/http_metrics.h"
#include "common/telemetry/prometheus/metrics_server.h"
#include "common/telemetry/prometheus/router_metrics.h"
#include "router/server/router_server.h"

namespace penstock {
namespace {

constexpr absl::Duration kDrainPatience = absl::Seconds(60);

absl::Status Run(const RouterOptions& options, ShutdownSignal& signal) {
  MonotonicClock clock;
  ASSIGN_OR_RETURN(std::unique_ptr<MetricsServer> metrics_server,
                   MetricsServer::Create(options.listen.metrics, "router",
                                         PENSTOCK_VERSION));
  RouterMetrics metrics(options.model_name, metrics_server->registry());
  HttpMetrics http_metrics(metrics_server->registry());
  ASSIGN_OR_RETURN(std::unique_ptr<RouterServer> server,
                   RouterServer::Start(options, clock, &metrics,
                                       {&http_metrics, [&metrics_server] {
                                          return metrics_server->Render();
                                        }}));
  // The one line of stdout: where to call, for whoever started this.
  std::cout << "{\"grpc\":\"" << server->address() << "\",\"metrics\":\""
            << metrics_server->address() << "\",\"http\":\""
            << server->http_address() << "\"}" << std::endl;
  Log(LogLevel::kInfo, "listening",
      {{"grpc", server->address()},
       {"metrics", metrics_server->address()},
       {"http", server->http_address()},
       {"model", options.model_name}});
  signal.Wait();
  Log(LogLevel::kInfo, "draining");
  const bool clean = server->Stop(kDrainPatience, [&signal] {
    return signal.WaitFor(absl::ZeroDuration()) != 0;
  });
  Log(LogLevel::kInfo, clean ? "stopped" : "stopped with requests cut off");
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  ShutdownSignal signal;  // before any other thread
  const auto line = ParseRouterCommandLine({argv + 1, argv + argc});
  if (!line.ok()) {
    std::cerr << "penstock-router: " << line.status().message() << "\n";
    return 2;
  }
  if (line->print.has_value()) {
    std::cout << *line->print;
    return 0;
  }
  static StderrLog log("router", LogLevel::kInfo);
  SetLogSink(&log);
  const absl::Status status = Run(line->options, signal);
  if (status.ok()) return 0;
  std::cerr << "penstock-router: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
