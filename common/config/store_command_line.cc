#include "common/config/store_command_line.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/parse_flags.h"

namespace penstock {
namespace {

constexpr char kProgram[] = "penstock-kvstore";

struct Sizes {
  std::string memory = "1GiB";
  std::string disk = "8GiB";
};

void AddFlags(CLI::App& app, StoreOptions& options, Sizes& sizes) {
  app.set_version_flag("--version",
                       absl::StrCat(kProgram, " ", PENSTOCK_VERSION));
  app.option_defaults()->always_capture_default();
  app.add_option("--name", options.name, "Stable name of this store");
  app.add_option("--listen,--grpc", options.listen.grpc,
                 "host:port of gRPC; port 0: any free one");
  app.add_option("--metrics-listen,--metrics", options.listen.metrics,
                 "host:port of /metrics; empty: none");
  app.add_option("--cluster-key-file", options.cluster_key_file,
                 "File with the key that the cluster shares");
  app.add_option("--memory", sizes.memory, "Memory for pages");
  app.add_option("--disk", options.disk_directory,
                 "Folder that keeps pages over a restart; empty: none");
  app.add_option("--disk-size", sizes.disk, "Bytes of files there");
  app.add_option("--data-listen", options.data_listen,
                 "host:port of KV pages over TCP, numeric; port 0: any free "
                 "one");
  app.add_option("--data-advertise", options.data_advertise,
                 "Numeric host that workers send pages to; default: the one "
                 "listened on");
  app.add_option("--transport", options.transport, "auto, shm or tcp")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}));
}

}  // namespace

absl::StatusOr<CommandLine<StoreOptions>> ParseStoreCommandLine(
    const std::vector<std::string>& args) {
  CommandLine<StoreOptions> line;
  Sizes sizes;
  CLI::App app("Keeps KV pages for the workers of a cluster", kProgram);
  AddFlags(app, line.options, sizes);
  ASSIGN_OR_RETURN(line.print, ParseFlags(app, kProgram, args));
  if (line.print.has_value()) return line;
  ASSIGN_OR_RETURN(line.options.memory_bytes,
                   ParseSize("memory", sizes.memory));
  ASSIGN_OR_RETURN(line.options.disk_bytes, ParseSize("disk-size", sizes.disk));
  RETURN_IF_ERROR(CheckListen(line.options.listen.grpc));
  return line;
}

}  // namespace penstock
