#include "tools/penstock/local_cluster.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <iostream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/env/real/entropy.h"
#include "common/model/files/model_file.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/client.h"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kTick = absl::Milliseconds(100);

// 256 bits of a cluster key, in hexadecimal, in memory that only children
// which inherit the descriptor can read: never in arguments or on disk.
int MakeKeyFile() {
  std::string key;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppendFormat(&key, "%016x", DrawEntropy());
  }
  const int fd = memfd_create("penstock-cluster-key", MFD_CLOEXEC);
  CHECK(fd >= 0) << "memfd_create: errno " << errno;
  CHECK(write(fd, key.data(), key.size()) == static_cast<ssize_t>(key.size()));
  return fd;
}

// Opened anew by each child, so that each reads from the start.
std::string KeyPath() {
  return absl::StrCat("/proc/self/fd/", ChildProcess::kInherited);
}

}  // namespace

LocalCluster::LocalCluster(const Options& options) : options_(options) {}

absl::Status LocalCluster::Run() {
  if (options_.one_process) {
    return absl::UnimplementedError(
        "--one-process is not built yet; leave it out to get one process for "
        "each server");
  }
  // Bad models are named here, once, rather than by each child.
  RETURN_IF_ERROR(OpenModelFile(options_.model).status());
  std::error_code error;
  directory_ =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  key_fd_ = MakeKeyFile();

  absl::Status status = StartAll();
  if (status.ok()) {
    options_.json ? PrintReadyJson() : PrintReady();
    status = Watch();
  }
  Stop();
  close(key_fd_);
  // Ctrl-C is how this is meant to end.
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::Status LocalCluster::StartAll() {
  ASSIGN_OR_RETURN(
      servers_.emplace_back(),
      StartServer("router", "router",
                  {"--grpc", options_.grpc, "--metrics", options_.http}));
  const std::string router = servers_[0].grpc;
  auto start_workers = [&](const std::string& role, int count) -> absl::Status {
    for (int i = 0; i < count; ++i) {
      const std::string name = absl::StrCat(role, "-", i);
      std::vector<std::string> arguments = {
          "--name",         name,
          "--router",       router,
          "--grpc",         "127.0.0.1:0",
          "--metrics",      "127.0.0.1:0",
          "--threads",      absl::StrCat(options_.threads),
          "--transport",    options_.transport,
          "--host-workers", absl::StrCat(options_.prefill + options_.decode)};
      if (!options_.kv_memory.empty()) {
        arguments.insert(arguments.end(), {"--kv-memory", options_.kv_memory});
      }
      if (!options_.backend.empty()) {
        arguments.insert(arguments.end(), {"--backend", options_.backend});
      }
      ASSIGN_OR_RETURN(servers_.emplace_back(),
                       StartServer(role, name, std::move(arguments)));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(start_workers("prefill", options_.prefill));
  RETURN_IF_ERROR(start_workers("decode", options_.decode));
  return WaitUntilServing();
}

absl::StatusOr<LocalCluster::Server> LocalCluster::StartServer(
    const std::string& role, const std::string& name,
    std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--model", options_.model,
                                     "--cluster-key-file", KeyPath()});
  if (!options_.model_name.empty()) {
    arguments.insert(arguments.end(), {"--model-name", options_.model_name});
  }
  Server server;
  server.role = role;
  ASSIGN_OR_RETURN(
      server.member,
      group_.Start({name, absl::StrCat(directory_, "/penstock-", role),
                    std::move(arguments), key_fd_}));
  const ProcessGroup::Member& member = *server.member;
  const absl::Status waited = group_.WaitUntil(
      [&] { return member.reported || !member.announcement.empty(); }, kTick,
      absl::Seconds(options_.start_timeout_seconds));
  if (absl::IsCancelled(waited)) return waited;
  const Json where = Json::parse(member.announcement, nullptr, false);
  if (member.reported || !waited.ok() || !where.is_object()) {
    return absl::UnavailableError(absl::StrCat(
        name, " did not start",
        member.last_line.empty() ? "" : absl::StrCat(": ", member.last_line)));
  }
  server.grpc = where.value("grpc", "");
  server.metrics = where.value("metrics", "");
  return server;
}

absl::Status LocalCluster::WaitUntilServing() {
  Client client(servers_[0].grpc);
  const ProcessGroup::Member* ended = nullptr;
  auto serving = [&] {
    for (const Server& server : servers_) {
      if (server.member->reported) ended = server.member;
    }
    if (ended != nullptr) return true;
    const absl::StatusOr<v1::GetModelInfoResponse> info =
        client.GetModelInfo(absl::Milliseconds(250));
    return info.ok() &&
           static_cast<int>(info->prefill_workers()) >= options_.prefill &&
           static_cast<int>(info->decode_workers()) >= options_.decode;
  };
  const absl::Status status = group_.WaitUntil(
      serving, kTick, absl::Seconds(options_.start_timeout_seconds));
  if (ended != nullptr) {
    return absl::UnavailableError(absl::StrCat(
        ended->process->name(), " did not start",
        ended->last_line.empty() ? "" : absl::StrCat(": ", ended->last_line)));
  }
  if (absl::IsDeadlineExceeded(status)) {
    return absl::DeadlineExceededError(absl::StrCat(
        "the workers were not ready after ", options_.start_timeout_seconds,
        " s; --start-timeout gives them longer"));
  }
  return status;
}

absl::Status LocalCluster::Watch() {
  const ProcessGroup::Member& router = *servers_[0].member;
  RETURN_IF_ERROR(group_.WaitUntil([&] { return router.reported; },
                                   absl::Seconds(1), absl::InfiniteDuration()));
  return absl::UnavailableError(
      absl::StrCat("the router ", DescribeExit(*router.process->TryReap())));
}

void LocalCluster::Stop() {
  // The router first: it lets running requests end, which needs the workers.
  StopServers(/*routers=*/true);
  StopServers(/*routers=*/false);
}

void LocalCluster::StopServers(bool routers) {
  auto each = [&](const std::function<void(ProcessGroup::Member&)>& act) {
    for (const auto& member : group_.members()) {
      if ((member->process->name() == "router") == routers &&
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

void LocalCluster::PrintReady() const {
  const Server& router = servers_[0];
  Client client(router.grpc);
  std::cout << "\ngRPC     " << router.grpc << "\nmetrics  http://"
            << router.metrics << "/metrics\n";
  const absl::StatusOr<v1::GetModelInfoResponse> info =
      client.GetModelInfo(absl::Seconds(1));
  if (info.ok()) {
    std::cout << "capacity " << info->model() << ": " << info->prefill_workers()
              << " prefill, " << info->decode_workers()
              << " decode, prompts up to " << info->max_prompt_tokens()
              << " tokens in a context of " << info->context_length() << "\n";
  }
  std::cout << "\nTry it:  " << directory_ << "/penstock generate --server "
            << router.grpc << " --chat \"Why is the sky blue?\"\n"
            << "Ctrl-C drains and stops everything.\n"
            << std::endl;
}

void LocalCluster::PrintReadyJson() const {
  Json document = {{"grpc", servers_[0].grpc},
                   {"metrics", servers_[0].metrics},
                   {"servers", Json::array()}};
  for (const Server& server : servers_) {
    document["servers"].push_back({{"name", server.member->process->name()},
                                   {"role", server.role},
                                   {"pid", server.member->process->pid()},
                                   {"grpc", server.grpc},
                                   {"metrics", server.metrics}});
  }
  std::cout << JsonLine(document) << std::endl;
}

}  // namespace penstock
