#pragma once

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace penstock {

// What the chosen subcommand does, once the command line is parsed.
using Action = std::function<absl::Status()>;

// Parses the command line into `action` by `app`'s subcommands and runs it. The
// process's exit status: 0, also for help; 1 with the action's error on stderr,
// after the program's name; 2 for a wrong command line, which the parser says.
int RunCommand(CLI::App& app, const Action& action, int argc, char** argv);

}  // namespace penstock
