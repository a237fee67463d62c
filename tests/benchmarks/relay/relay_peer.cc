// Both sides of a router, for relay.py: workers that cost nothing, clients, and
// the plain gRPC echo to compare with.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/model_file.h"
#include "common/runtime/shutdown_signal.h"
#include "tests/benchmarks/relay/echo_client.h"
#include "tests/benchmarks/relay/echo_server.h"
#include "tests/benchmarks/relay/fake_worker.h"
#include "tests/benchmarks/relay/sse_client.h"

namespace penstock {
namespace {

using Action = std::function<absl::Status(ShutdownSignal&)>;

void AddWorkers(CLI::App& app, Action& action) {
  struct Flags {
    std::string router, model;
    int count = 2, tick_us = 1000;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("workers", "Fake workers.");
  command->add_option("--router", flags->router)->required();
  command->add_option("--model", flags->model)->required();
  command->add_option("--count", flags->count);
  command->add_option("--tick-us", flags->tick_us)->check(CLI::PositiveNumber);
  command->callback([flags, &action] {
    action = [flags](ShutdownSignal& signal) -> absl::Status {
      ASSIGN_OR_RETURN(auto model, OpenModelFile(flags->model));
      std::vector<std::unique_ptr<FakeWorker>> workers;
      for (int i = 0; i < flags->count; ++i) {
        ASSIGN_OR_RETURN(
            auto worker,
            FakeWorker::Start({absl::StrCat("fake-", i), flags->router,
                               model->spec().content,
                               absl::Microseconds(flags->tick_us)}));
        workers.push_back(std::move(worker));
      }
      auto registered = [](const auto& worker) { return worker->registered(); };
      while (!std::all_of(workers.begin(), workers.end(), registered)) {
        if (signal.WaitFor(absl::Milliseconds(10)) != 0) break;
      }
      std::cout << "ready" << std::endl;
      signal.Wait();
      return absl::OkStatus();
    };
  });
}

void AddEchoServer(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("echo-server", "Plain gRPC echo.");
  command->callback([&action] {
    action = [](ShutdownSignal& signal) -> absl::Status {
      ASSIGN_OR_RETURN(auto server, EchoServer::Start());
      std::cout << server->address() << std::endl;
      signal.Wait();
      return absl::OkStatus();
    };
  });
}

void AddEchoClient(CLI::App& app, Action& action) {
  auto load = std::make_shared<EchoLoad>();
  auto tick_us = std::make_shared<int>(1000);
  CLI::App* command = app.add_subcommand("echo-client", "Load for it.");
  command->add_option("--server", load->server)->required();
  command->add_option("--streams", load->streams)->required();
  command->add_option("--messages", load->messages)->required();
  command->add_option("--tick-us", *tick_us)->check(CLI::PositiveNumber);
  command->callback([load, tick_us, &action] {
    action = [load, tick_us](ShutdownSignal&) {
      load->tick = absl::Microseconds(*tick_us);
      return RunEchoLoad(*load);
    };
  });
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void AddSseClient(CLI::App& app, Action& action) {
  auto load = std::make_shared<SseLoad>();
  CLI::App* command = app.add_subcommand("sse-client", "HTTP load.");
  command->add_option("--port", load->port)->required();
  command->add_option("--model", load->model)->required();
  command->add_option("--streams", load->streams)->required();
  command->add_option("--requests", load->requests)->required();
  command->add_option("--tokens", load->tokens)->required();
  command->add_option("--prompt-chars", load->prompt_chars)->required();
  command->callback([load, &action] {
    action = [load](ShutdownSignal&) -> absl::Status {
      ASSIGN_OR_RETURN(const SseResult result, RunSseLoad(*load));
      std::cout << "{\"tokens\":" << result.tokens
                << ",\"seconds\":" << result.seconds
                << ",\"first_token_p50_ms\":" << Median(result.first_token_ms)
                << "}" << std::endl;
      return absl::OkStatus();
    };
  });
}

int Main(int argc, char** argv) {
  ShutdownSignal signal;  // before any other thread
  CLI::App app("Both sides of a router that is measured.", "relay_peer");
  app.require_subcommand(1);
  Action action;
  AddWorkers(app, action);
  AddEchoServer(app, action);
  AddEchoClient(app, action);
  AddSseClient(app, action);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = action(signal);
  if (status.ok()) return 0;
  std::cerr << "relay_peer: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) { return penstock::Main(argc, argv); }
