#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/config/options.h"

namespace penstock {

// A parsed command line: either options to run with, or a text (--help,
// --version) to print before exiting with 0.
template <typename Options>
struct CommandLine {
  Options options;
  std::optional<std::string> print;
};

// `args` without the program's name. INVALID_ARGUMENT names the flag or the
// key of the --config file, and the nearest known key for an unknown one;
// NOT_FOUND a config file that cannot be read.
absl::StatusOr<CommandLine<RouterOptions>> ParseRouterCommandLine(
    const std::vector<std::string>& args);
// `role` ("prefill" or "decode") names the program in --help.
absl::StatusOr<CommandLine<WorkerOptions>> ParseWorkerCommandLine(
    absl::string_view role, const std::vector<std::string>& args);

// "512MiB", "2GiB", "1048576": a whole number of bytes above 0.
absl::StatusOr<uint64_t> ParseSize(absl::string_view field,
                                   absl::string_view text);

// The key of a cluster: the file's bytes less trailing white space; empty for
// an empty path. NOT_FOUND or INVALID_ARGUMENT (empty file) name the path.
absl::StatusOr<std::string> ReadClusterKey(const std::string& path);

}  // namespace penstock
