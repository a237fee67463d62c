#pragma once

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// Parses a program's arguments. A text: print it and succeed, nothing else was
// asked for (help or version; `app` has a version flag). INVALID_ARGUMENT says
// what is wrong and where help is.
absl::StatusOr<std::optional<std::string>> ParseFlags(
    CLI::App& app, const std::string& program,
    const std::vector<std::string>& args);

// INVALID_ARGUMENT: `address`, the value of --listen, is no host:port.
absl::Status CheckListen(const std::string& address);

}  // namespace penstock
