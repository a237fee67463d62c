#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "tools/simulator/cli/action.h"

namespace penstock {

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
