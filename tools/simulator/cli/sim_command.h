#pragma once

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace penstock {

// What the chosen subcommand does, once the command line is parsed.
using Action = std::function<absl::Status()>;

// Adds the simulator's subcommands to `app`: when the command line names one,
// `action` is set. `program` is how a user calls `app`, "penstock-sim" or
// "penstock sim", for commands that are printed to be repeated.
void AddSimCommands(CLI::App& app, const std::string& program, Action& action);

// Each adds one of them.
void AddSimHashCommand(CLI::App& app, Action& action);
void AddSimListCommand(CLI::App& app, Action& action);
void AddSimRandomCommand(CLI::App& app, const std::string& program,
                         Action& action);
void AddSimRunCommand(CLI::App& app, Action& action);

}  // namespace penstock
