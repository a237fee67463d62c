#include "common/worker/server/worker_main.h"

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/config/command_line.h"
#include "common/runtime/shutdown_signal.h"
#include "common/runtime/stderr_log.h"
#include "common/worker/server/worker_server.h"

namespace penstock {
namespace {

constexpr absl::Duration kDrainLimit = absl::Seconds(60);

int Complain(absl::string_view program, const absl::Status& status, int exit) {
  std::fprintf(stderr, "%s: %s\n", std::string(program).c_str(),
               std::string(status.message()).c_str());
  return exit;
}

}  // namespace

int RunWorker(absl::string_view role, WorkerRoles roles, int argc,
              char** argv) {
  std::string program = absl::StrCat("penstock-", role);
  auto line = ParseWorkerCommandLine(
      role, std::vector<std::string>(argv + 1, argv + argc));
  if (!line.ok()) return Complain(program, line.status(), 2);
  if (line->print.has_value()) {
    std::fputs(line->print->c_str(), stdout);
    return 0;
  }
  ShutdownSignal signal;  // before any thread
  StderrLog log(std::string(role), LogLevel::kInfo);
  SetLogSink(&log);
  auto server = WorkerServer::Start(line->options, roles);
  if (!server.ok()) return Complain(program, server.status(), 1);
  // The one line of stdout: where to call, for whoever started this.
  std::printf("{\"grpc\":\"%s\",\"metrics\":\"%s\"}\n",
              (*server)->address().c_str(),
              (*server)->metrics_address().c_str());
  std::fflush(stdout);
  Log(LogLevel::kInfo, "ready",
      {{"worker", (*server)->self().name},
       {"grpc", (*server)->address()},
       {"metrics", (*server)->metrics_address()}});
  signal.Wait();
  Log(LogLevel::kInfo, "draining");
  if (!(*server)->Drain(kDrainLimit)) {
    Log(LogLevel::kWarning, "stopping with work left");
  }
  server->reset();
  Log(LogLevel::kInfo, "stopped");
  SetLogSink(nullptr);
  return 0;
}

}  // namespace penstock
