#include "tools/penstock/local_cluster.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/runtime/load/model_loader.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/client.h"
#include "tools/penstock/cluster_report.h"

namespace penstock {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(100);
constexpr char kAnyPort[] = "127.0.0.1:0";
constexpr char kRouter[] = "router";
constexpr char kStore[] = "kvstore";

absl::Status DidNotStart(const ProcessGroup::Member& member) {
  return absl::UnavailableError(absl::StrCat(
      member.process->name(), " did not start",
      member.last_line.empty() ? "" : absl::StrCat(": ", member.last_line)));
}

std::string Flag(absl::string_view name, absl::string_view value) {
  return absl::StrCat("--", name, "=", value);
}

// One for processes, since the store is one.
std::string StoreTransport(const std::string& transport) {
  return transport == "inproc" ? "auto" : transport;
}

// An empty value has to be an argument of its own: else the next one is taken.
void AddFlag(std::vector<std::string>& arguments, const std::string& name,
             const std::string& value) {
  if (value.empty()) {
    arguments.insert(arguments.end(), {absl::StrCat("--", name), ""});
  } else {
    arguments.push_back(Flag(name, value));
  }
}

// Gives a flag that is there, with a value, another one.
void SetFlag(std::vector<std::string>& arguments, absl::string_view name,
             absl::string_view value) {
  const auto given = std::find_if(
      arguments.begin(), arguments.end(), [&](const std::string& argument) {
        return absl::StartsWith(argument, Flag(name, ""));
      });
  CHECK(given != arguments.end()) << name;
  *given = Flag(name, value);
}

// A free port beside an address.
std::string AnyPortOf(const std::string& address) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":0");
}

}  // namespace

LocalCluster::LocalCluster(const ClusterOptions& options) : options_(options) {}

LocalCluster::~LocalCluster() {
  if (key_fd_ >= 0) close(key_fd_);
  if (ledger_fd_ >= 0) close(ledger_fd_);
}

absl::Status LocalCluster::Run() {
  // Bad models are named here, once, rather than by each child.
  RETURN_IF_ERROR(LoadModel({.path = options_.model,
                             .weights = options_.weights,
                             .convert = false})
                      .status());
  std::error_code error;
  directory_ =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  ASSIGN_OR_RETURN(key_fd_, OpenClusterKey(options_));
  // Without it the kernel divides the cores.
  if (options_.core_turns) {
    ledger_fd_ = memfd_create("penstock-core-ledger", MFD_CLOEXEC);
  }

  absl::Status status = StartAll();
  if (status.ok()) {
    Report();
    status = Watch();
  }
  Stop();
  // Ctrl-C is how this is meant to end.
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::Status LocalCluster::StartAll() {
  for (int i = 0; i < options_.routers; ++i) {
    const std::string name =
        options_.routers == 1 ? kRouter : absl::StrCat(kRouter, "-", i);
    RETURN_IF_ERROR(StartServer(kRouter, name, RouterArguments(i)));
  }
  RETURN_IF_ERROR(StartStore());
  RETURN_IF_ERROR(StartWorkers("prefill", options_.prefill));
  RETURN_IF_ERROR(StartWorkers("decode", options_.decode));
  return WaitUntilServing();
}

absl::Status LocalCluster::StartStore() {
  store_ = options_.kvstore;
  if (store_ != ClusterOptions::kOwnStore) return absl::OkStatus();
  std::vector<std::string> arguments = {Flag("grpc", kAnyPort),
                                        Flag("metrics", kAnyPort),
                                        "--memory",
                                        options_.kvstore_memory,
                                        "--transport",
                                        StoreTransport(options_.transport)};
  if (!options_.kvstore_disk.empty()) {
    arguments.insert(arguments.end(), {"--disk", options_.kvstore_disk});
  }
  RETURN_IF_ERROR(StartServer(kStore, kStore, std::move(arguments)));
  store_ = servers_.back().grpc;
  return absl::OkStatus();
}

absl::Status LocalCluster::StartWorkers(const std::string& role, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string name = absl::StrCat(role, "-", i);
    RETURN_IF_ERROR(StartServer(role, name, WorkerArguments(name)));
  }
  return absl::OkStatus();
}

std::vector<std::string> LocalCluster::RouterArguments(int router) const {
  auto listen = [&](const std::string& address) {
    return router == 0 || address.empty() ? address : AnyPortOf(address);
  };
  std::vector<std::string> arguments;
  AddFlag(arguments, "grpc", listen(options_.grpc));
  AddFlag(arguments, "metrics", listen(options_.metrics));
  AddFlag(arguments, "http", listen(options_.http));
  if (!options_.router_config.empty()) {
    arguments.push_back(Flag("config", options_.router_config));
  }
  if (options_.local_prefill_tokens) {
    arguments.push_back("--local-prefill-tokens");
    arguments.push_back(absl::StrCat(*options_.local_prefill_tokens));
  }
  if (options_.policy) {
    arguments.push_back("--policy");
    arguments.push_back(*options_.policy);
  }
  const std::vector<std::string> model = ModelArguments();
  arguments.insert(arguments.end(), model.begin(), model.end());
  return arguments;
}

std::vector<std::string> LocalCluster::ModelArguments() const {
  std::vector<std::string> arguments = {"--model", options_.model};
  if (!options_.model_name.empty()) {
    arguments.insert(arguments.end(), {"--model-name", options_.model_name});
  }
  if (!options_.weights.empty()) {
    arguments.insert(arguments.end(), {"--weights", options_.weights});
  }
  if (!options_.kv_type.empty()) {
    arguments.insert(arguments.end(), {"--kv-type", options_.kv_type});
  }
  return arguments;
}

std::vector<std::string> LocalCluster::WorkerArguments(
    const std::string& name) const {
  std::vector<std::string> routers;
  for (const Server& server : servers_) {
    if (server.role == kRouter) routers.push_back(server.grpc);
  }
  std::vector<std::string> arguments = {
      "--name",
      name,
      "--router",
      absl::StrJoin(routers, ","),
      Flag("grpc", kAnyPort),
      Flag("metrics", kAnyPort),
      "--threads",
      absl::StrCat(options_.threads),
      "--host-workers",
      absl::StrCat(options_.prefill + options_.decode),
      "--kv-memory",
      options_.kv_memory,
      "--backend",
      options_.backend,
      "--transport",
      options_.transport};
  const std::pair<const char*, std::string> given[] = {
      {"--kv-host-memory", options_.kv_host_memory},
      {"--kv-disk", options_.kv_disk},
      {"--kv-disk-bytes", options_.kv_disk_bytes},
      {"--kvstore", store_},
      {"--weights-cache", options_.weights_cache},
      {"--precision", options_.precision},
      {"--core-ledger", LedgerPath()}};
  for (const auto& [flag, value] : given) {
    if (!value.empty()) arguments.insert(arguments.end(), {flag, value});
  }
  if (options_.itl_target_ms) {
    arguments.insert(arguments.end(), {"--itl-target-ms",
                                       absl::StrCat(*options_.itl_target_ms)});
  }
  const std::vector<std::string> model = ModelArguments();
  arguments.insert(arguments.end(), model.begin(), model.end());
  return arguments;
}

std::string LocalCluster::LedgerPath() const {
  if (ledger_fd_ < 0) return "";
  return absl::StrCat("/proc/", getpid(), "/fd/", ledger_fd_);
}

absl::Status LocalCluster::StartServer(const std::string& role,
                                       const std::string& name,
                                       std::vector<std::string> arguments) {
  // Each child opens the key anew, so that each reads it from the start.
  arguments.insert(arguments.end(),
                   {"--cluster-key-file", KeyPath(ChildProcess::kInherited)});
  Server server;
  server.role = role;
  server.started = absl::Now();
  ASSIGN_OR_RETURN(
      server.member,
      group_.Start({name, absl::StrCat(directory_, "/penstock-", role),
                    std::move(arguments), key_fd_}));
  const ProcessGroup::Member& member = *server.member;
  const absl::Status waited = group_.WaitUntil(
      [&] { return member.reported || !member.announcement.empty(); }, kTick,
      absl::Seconds(options_.start_timeout_seconds));
  if (absl::IsCancelled(waited)) return waited;
  if (member.reported || !waited.ok() || !TakeAddresses(server)) {
    return DidNotStart(member);
  }
  servers_.push_back(std::move(server));
  return absl::OkStatus();
}

bool LocalCluster::TakeAddresses(Server& server) {
  const auto where =
      nlohmann::json::parse(server.member->announcement, nullptr, false);
  if (!where.is_object()) return false;
  server.grpc = where.value("grpc", "");
  server.metrics = where.value("metrics", "");
  server.http = where.value("http", "");
  return true;
}

absl::Status LocalCluster::WaitUntilServing() {
  std::vector<std::unique_ptr<Client>> routers;
  for (const Server& server : servers_) {
    if (server.role != kRouter) continue;
    routers.push_back(std::make_unique<Client>(server.grpc));
  }
  const ProcessGroup::Member* ended = nullptr;
  auto done = [&] {
    for (const Server& server : servers_) {
      if (server.member->reported) ended = server.member;
    }
    return ended != nullptr ||
           std::all_of(routers.begin(), routers.end(), [&](const auto& router) {
             return IsServing(*router, options_.prefill, options_.decode);
           });
  };
  const absl::Status status = group_.WaitUntil(
      done, kTick, absl::Seconds(options_.start_timeout_seconds));
  if (ended != nullptr) return DidNotStart(*ended);
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the workers were not ready after ", options_.start_timeout_seconds,
        " s; --start-timeout gives them longer"));
  }
  return status;
}

void LocalCluster::Report() const {
  std::vector<RunningServer> running;
  for (const Server& server : servers_) {
    running.push_back({server.member->process->name(), server.role,
                       server.member->process->pid(), server.grpc,
                       server.metrics, server.http});
  }
  ReportReady(options_, running);
}

absl::Status LocalCluster::Watch() {
  auto somebody_ended = [&] {
    return std::any_of(servers_.begin(), servers_.end(),
                       [](const Server& server) {
                         return server.member->reported &&
                                server.restart_at == absl::InfiniteFuture();
                       });
  };
  while (true) {
    const absl::Time next = RestartServers();
    const absl::Status waited =
        group_.WaitUntil(somebody_ended, absl::Seconds(1), next - absl::Now());
    if (absl::IsCancelled(waited)) return waited;
  }
}

std::vector<std::string> LocalCluster::ArgumentsAgain(Server& server) {
  std::vector<std::string> arguments = server.member->options.arguments;
  // Who never listened may have found its port taken by somebody else. Clients
  // look for a router where it was, though, and workers for the store.
  const bool same =
      TakeAddresses(server) || server.role == kRouter || server.role == kStore;
  SetFlag(arguments, "grpc", same ? server.grpc : kAnyPort);
  if (!server.metrics.empty()) {
    SetFlag(arguments, "metrics", same ? server.metrics : kAnyPort);
  }
  if (!server.http.empty()) SetFlag(arguments, "http", server.http);
  return arguments;
}

absl::Time LocalCluster::RestartServers() {
  absl::Time next = absl::InfiniteFuture();
  for (Server& server : servers_) {
    if (!server.member->reported) continue;
    const std::string& name = server.member->options.name;
    const absl::Time now = absl::Now();
    if (server.restart_at == absl::InfiniteFuture()) {
      const absl::Duration pause = server.pause.After(now - server.started);
      server.restart_at = now + pause;
      std::cerr << name << " is started again in "
                << absl::FormatDuration(pause) << std::endl;
    }
    if (server.restart_at > now) {
      next = std::min(next, server.restart_at);
      continue;
    }
    const absl::Status started =
        group_.Restart(*server.member, ArgumentsAgain(server));
    if (!started.ok()) {
      // The others go on without it meanwhile.
      const absl::Duration pause = server.pause.After(absl::ZeroDuration());
      std::cerr << name << " could not be started: " << started.message()
                << "; tried again in " << absl::FormatDuration(pause)
                << std::endl;
      server.restart_at = now + pause;
      next = std::min(next, server.restart_at);
      continue;
    }
    server.started = now;
    server.restart_at = absl::InfiniteFuture();
  }
  return next;
}

void LocalCluster::Stop() {
  // Routers first: they let running requests end, which needs the workers.
  StopServers(/*routers=*/true);
  StopServers(/*routers=*/false);
}

void LocalCluster::StopServers(bool routers) {
  auto each = [&](const std::function<void(ProcessGroup::Member&)>& act) {
    for (const auto& member : group_.members()) {
      if (absl::StartsWith(member->process->name(), kRouter) == routers &&
          !member->reported) {
        act(*member);
      }
    }
  };
  auto all_ended = [&] {
    bool running = false;
    each([&](ProcessGroup::Member&) { running = true; });
    return !running;
  };
  each([](ProcessGroup::Member& member) { member.process->Signal(SIGTERM); });
  const absl::Status drained = group_.WaitUntil(
      all_ended, kTick, absl::Seconds(options_.drain_timeout_seconds));
  if (drained.ok()) return;
  // A second Ctrl-C, or out of patience.
  each([](ProcessGroup::Member& member) { member.process->Signal(SIGKILL); });
  group_.WaitUntil(all_ended, kTick, absl::Seconds(5)).IgnoreError();
}

}  // namespace penstock
