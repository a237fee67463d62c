#pragma once

#include "CLI/CLI.hpp"
#include "tools/simulator/cli/sim_command.h"

namespace penstock {

// Each adds one subcommand with its flags to `app`; when the command line names
// it, `action` is set. The wrong use of a flag is the parser's to report.
// `bench` is the parent of bench subcommands.
void AddBenchCacheCommand(CLI::App& bench, Action& action);
void AddBenchEngineCommand(CLI::App& bench, Action& action);
void AddBenchKvCommand(CLI::App& bench, Action& action);
void AddBenchRouterCommand(CLI::App& bench, Action& action);
void AddBenchServeCommand(CLI::App& bench, Action& action);
void AddChatCommand(CLI::App& app, Action& action);
void AddDetokenizeCommand(CLI::App& app, Action& action);
void AddDoctorCommand(CLI::App& app, Action& action);
void AddGenerateCommand(CLI::App& app, Action& action);
void AddModelsCommand(CLI::App& app, Action& action);
void AddTokenizeCommand(CLI::App& app, Action& action);
void AddUpCommand(CLI::App& app, Action& action);

}  // namespace penstock
