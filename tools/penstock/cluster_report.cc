#include "tools/penstock/cluster_report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/command_line.h"
#include "common/env/real/entropy.h"
#include "common/model/files/model_file.h"
#include "common/model/kv_layout.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

// Tokens whose KV fits into the memory of one worker; 0 when unknown.
uint64_t KvTokens(const ClusterOptions& options) {
  const auto model = OpenModelFile(options.model);
  const auto bytes = ParseSize("kv-memory", options.kv_memory);
  if (!model.ok() || !bytes.ok()) return 0;
  KvType type = options.backend == "oracle" ? KvType::kF32 : KvType::kF16;
  if (const auto given = ParseKvType(options.kv_type); given.ok()) {
    type = *given;
  }
  return *bytes / KvLayout::For((*model)->spec(), type).block_bytes() *
         kBlockTokens;
}

void PrintJson(const std::vector<RunningServer>& servers) {
  Json list = Json::array();
  for (const RunningServer& server : servers) {
    list.push_back({{"name", server.name},
                    {"role", server.role},
                    {"pid", server.pid},
                    {"grpc", server.grpc},
                    {"metrics", server.metrics}});
    if (!server.http.empty()) list.back()["http"] = server.http;
  }
  std::cout << JsonLine({{"grpc", servers[0].grpc},
                         {"metrics", servers[0].metrics},
                         {"http", servers[0].http},
                         {"servers", std::move(list)}})
            << std::endl;
}

// The settings that OpenAI's clients read, and a copyable call.
void PrintHttp(const std::string& address) {
  std::cout << "\nhttp     export OPENAI_BASE_URL=http://" << address
            << "/v1 OPENAI_API_KEY=none\n"
            << "         curl http://" << address
            << "/v1/chat/completions -H 'Content-Type: application/json' -d "
               "'{\"messages\":[{\"role\":\"user\",\"content\":\"Why is the "
               "sky blue?\"}],\"max_tokens\":64}'\n";
}

absl::StatusOr<int> Opened(int fd, const std::string& path) {
  if (fd >= 0) return fd;
  return absl::ErrnoToStatus(errno, absl::StrCat("cluster key file ", path));
}

}  // namespace

void ReportReady(const ClusterOptions& options,
                 const std::vector<RunningServer>& servers) {
  if (options.json) {
    PrintJson(servers);
    return;
  }
  const RunningServer& router = servers[0];
  std::error_code error;
  const std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  std::cout << "\ngRPC     " << router.grpc << "\nmetrics  http://"
            << router.metrics << "/metrics\n";
  for (const RunningServer& server : servers) {
    if (server.role != router.role || server.name == router.name) continue;
    std::cout << "         " << server.name << ": gRPC " << server.grpc
              << ", metrics http://" << server.metrics << "/metrics";
    if (!server.http.empty()) std::cout << ", http " << server.http;
    std::cout << "\n";
  }
  Client client(router.grpc);
  const absl::StatusOr<v1::GetModelInfoResponse> info =
      client.GetModelInfo(absl::Seconds(1));
  if (info.ok()) {
    std::cout << absl::StrFormat(
        "capacity %s: %d prefill and %d decode workers with room for %d tokens "
        "each, prompts up to %d tokens\n",
        info->model(), info->prefill_workers(), info->decode_workers(),
        KvTokens(options), info->max_prompt_tokens());
  }
  if (!router.http.empty()) PrintHttp(router.http);
  std::cout << "\nTry it:  " << self.string() << " generate --server "
            << router.grpc << " --chat \"Why is the sky blue?\"\n"
            << "Ctrl-C drains and stops everything.\n"
            << std::endl;
}

bool IsServing(Client& router, int prefill, int decode) {
  const absl::StatusOr<v1::GetModelInfoResponse> info =
      router.GetModelInfo(absl::Milliseconds(250));
  return info.ok() && static_cast<int>(info->prefill_workers()) >= prefill &&
         static_cast<int>(info->decode_workers()) >= decode;
}

absl::StatusOr<int> OpenClusterKey(const ClusterOptions& options) {
  std::string path = options.cluster_key_file;
  const std::string& kept =
      options.kv_disk.empty() ? options.kvstore_disk : options.kv_disk;
  if (path.empty() && !kept.empty()) {
    std::error_code error;
    std::filesystem::create_directories(kept, error);
    path = absl::StrCat(kept, "/cluster-key");
  }
  if (!path.empty()) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT) return Opened(fd, path);
  }
  std::string key;  // 256 bits, in hexadecimal
  for (int i = 0; i < 4; ++i) {
    absl::StrAppendFormat(&key, "%016x", DrawEntropy());
  }
  const int fd =
      path.empty()
          ? memfd_create("penstock-cluster-key", MFD_CLOEXEC)
          : open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  ASSIGN_OR_RETURN(const int made, Opened(fd, path));
  CHECK(write(made, key.data(), key.size()) ==
        static_cast<ssize_t>(key.size()));
  return made;
}

std::string KeyPath(int fd) { return absl::StrCat("/proc/self/fd/", fd); }

}  // namespace penstock
