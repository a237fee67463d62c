#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/command_line.h"
#include "common/config/options.h"

namespace penstock {

// What penstock-kvstore was told, by flags and these defaults.
struct StoreOptions {
  std::string name = "kvstore";
  ListenOptions listen{"127.0.0.1:50061", "127.0.0.1:9161"};
  std::string cluster_key_file;  // empty: the key is empty (loopback only)
  uint64_t memory_bytes = uint64_t{1} << 30;
  std::string disk_directory;  // empty: memory is all
  uint64_t disk_bytes = uint64_t{8} << 30;
  std::string data_listen = "127.0.0.1:0";
  std::string data_advertise;      // numeric host; empty: the one listened on
  std::string transport = "auto";  // auto, shm, tcp
};

// `args` without the program's name. INVALID_ARGUMENT names the flag.
absl::StatusOr<CommandLine<StoreOptions>> ParseStoreCommandLine(
    const std::vector<std::string>& args);

}  // namespace penstock
