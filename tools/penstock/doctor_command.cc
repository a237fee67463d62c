#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/files/model_file.h"
#include "common/model/kv_layout.h"
#include "nlohmann/json.hpp"
#include "tools/penstock/command.h"
#include "tools/penstock/host_threads.h"
#include "tools/penstock/json_line.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

struct Options {
  std::string model = "models/SmolLM2-135M-Instruct.Q4_1.gguf";
  bool json = false;
};

struct Finding {
  enum class Level { kOk, kWarning, kFailure };
  std::string name;
  Level level = Level::kOk;
  std::string detail;
  std::string way_out;  // when not kOk
};

const char* LevelName(Finding::Level level) {
  switch (level) {
    case Finding::Level::kOk:
      return "ok";
    case Finding::Level::kWarning:
      return "warning";
    case Finding::Level::kFailure:
      return "failure";
  }
  return "";
}

Finding CheckProcessor() {
  std::vector<std::string> have;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) have.push_back("AVX2");
  if (__builtin_cpu_supports("avx512f")) have.push_back("AVX-512");
  if (__builtin_cpu_supports("avx512vnni")) have.push_back("VNNI");
#endif
  const int cores = HostThreads();
  Finding finding{"processor", Finding::Level::kOk,
                  absl::StrCat(cores, " cores, ",
                               have.empty() ? "no vector units known here"
                                            : absl::StrJoin(have, " ")),
                  ""};
  if (have.empty()) {
    finding.level = Finding::Level::kWarning;
    finding.way_out = "the scalar path works but is slow; use x86-64 with AVX2";
  } else if (cores < 2) {
    finding.level = Finding::Level::kWarning;
    finding.way_out = "prefill and decode share one core; give it two";
  }
  return finding;
}

// Kibibytes of `key` in /proc/meminfo; 0 when it cannot be read.
uint64_t MemoryKib(absl::string_view key) {
  std::ifstream file("/proc/meminfo");
  std::string name, rest;
  uint64_t value = 0;
  while (file >> name >> value && std::getline(file, rest)) {
    if (name == key) return value;
  }
  return 0;
}

Finding CheckMemory() {
  constexpr uint64_t kWantedMib = 2048;
  const uint64_t available = MemoryKib("MemAvailable:") >> 10;
  Finding finding{"memory", Finding::Level::kOk,
                  absl::StrCat(available, " MiB available"), ""};
  if (available < kWantedMib) {
    finding.level = Finding::Level::kWarning;
    finding.way_out = absl::StrCat("three processes want about ", kWantedMib,
                                   " MiB; lower --kv-memory");
  }
  return finding;
}

Finding CheckSharedMemory() {
  Finding finding{"shared memory", Finding::Level::kOk, "memfd works", ""};
  const int fd = memfd_create("penstock-doctor", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, 1 << 20) != 0) {
    finding.level = Finding::Level::kWarning;
    finding.detail = absl::StrCat("memfd_create: ", std::strerror(errno));
    finding.way_out = "pages will move over TCP; allow memfd in the sandbox";
  }
  if (fd >= 0) close(fd);
  return finding;
}

Finding CheckOpenFiles() {
  constexpr rlim_t kWanted = 1024;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  Finding finding{"open files", Finding::Level::kOk,
                  absl::StrCat("limit ", limit.rlim_cur), ""};
  if (limit.rlim_cur < kWanted) {
    finding.level = Finding::Level::kWarning;
    finding.way_out = absl::StrCat("ulimit -n ", kWanted);
  }
  return finding;
}

Finding CheckPort(const std::string& name, uint16_t port) {
  Finding finding{name, Finding::Level::kOk,
                  absl::StrCat("127.0.0.1:", port, " is free"), ""};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    finding.level = Finding::Level::kWarning;
    finding.detail =
        absl::StrCat("127.0.0.1:", port, ": ", std::strerror(errno));
    finding.way_out =
        "a server may be running already; else choose another "
        "address with --grpc or --http";
  }
  close(fd);
  return finding;
}

// Tokens that a GiB of --kv-memory holds, by --kv-type.
std::string RoomForKv(const ModelSpec& spec) {
  std::vector<std::string> room;
  for (const KvTypeTraits& type : kKvTypes) {
    if (type.type == KvType::kF32) continue;
    const uint64_t block = KvLayout::For(spec, type.type).block_bytes();
    room.push_back(absl::StrCat(type.name, " ",
                                (uint64_t{1} << 30) / block * kBlockTokens));
  }
  return absl::StrJoin(room, ", ");
}

Finding CheckModel(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ModelFile>> file = OpenModelFile(path);
  if (file.ok()) {
    const ModelSpec& spec = (*file)->spec();
    return {"model", Finding::Level::kOk,
            absl::StrCat(path, ": ", spec.name,
                         "; tokens in a GiB of KV: ", RoomForKv(spec)),
            ""};
  }
  return {"model", Finding::Level::kFailure,
          std::string(file.status().message()),
          "tools/get_model brings the default one, --model names another"};
}

Finding CheckServers() {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> missing;
  for (const char* name :
       {"penstock-router", "penstock-prefill", "penstock-decode"}) {
    if (access((here / name).c_str(), X_OK) != 0) missing.push_back(name);
  }
  if (missing.empty()) {
    return {"servers", Finding::Level::kOk, here.string(), ""};
  }
  return {"servers", Finding::Level::kFailure,
          absl::StrCat(absl::StrJoin(missing, ", "), " not in ", here.string()),
          "cmake --preset release && cmake --build --preset release"};
}

void Print(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::cout << LevelName(finding.level) << "  " << finding.name << ": "
              << finding.detail << "\n";
    if (finding.level != Finding::Level::kOk) {
      std::cout << "    " << finding.way_out << "\n";
    }
  }
}

void PrintJson(const std::vector<Finding>& findings) {
  Json checks = Json::array();
  for (const Finding& finding : findings) {
    checks.push_back({{"name", finding.name},
                      {"status", LevelName(finding.level)},
                      {"detail", finding.detail},
                      {"way_out", finding.way_out}});
  }
  std::cout << JsonLine({{"checks", checks}}) << "\n";
}

absl::Status Doctor(const Options& options) {
  const std::vector<Finding> findings = {
      CheckProcessor(),
      CheckMemory(),
      CheckSharedMemory(),
      CheckOpenFiles(),
      CheckPort("gRPC port", 50051),
      CheckPort("HTTP port", 8080),
      CheckModel(options.model),
      CheckServers(),
  };
  options.json ? PrintJson(findings) : Print(findings);
  for (const Finding& finding : findings) {
    if (finding.level == Finding::Level::kFailure) {
      return absl::FailedPreconditionError(
          absl::StrCat(finding.name, ": ", finding.detail));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("doctor", "What is wrong with this machine.");
  auto options = std::make_shared<Options>();
  command->add_option("--model", options->model, "GGUF file");
  command->add_flag("--json", options->json, "one JSON document");
  command->callback(
      [options, &action] { action = [options] { return Doctor(*options); }; });
}

}  // namespace penstock
