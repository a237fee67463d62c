#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace penstock {

// Adds `sweep` with its flags to `app`; when the command line names it,
// `action` is set to what it does.
void AddSweepCommand(CLI::App& app, std::function<absl::Status()>& action);

}  // namespace penstock
