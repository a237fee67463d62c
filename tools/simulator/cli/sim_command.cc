#include "tools/simulator/cli/sim_command.h"

#include "tools/simulator/trace/sweep_command.h"
#include "tools/simulator/trace/trace_command.h"

namespace penstock {

void AddSimCommands(CLI::App& app, const std::string& program, Action& action) {
  app.require_subcommand(1);
  AddSimHashCommand(app, action);
  AddSimListCommand(app, action);
  AddSimRandomCommand(app, program, action);
  AddSimRunCommand(app, action);
  AddSweepCommand(app, action);
  AddTraceCommand(app, action);
}

}  // namespace penstock
