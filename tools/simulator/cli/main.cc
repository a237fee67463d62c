#include "tools/simulator/cli/sim_command.h"

int main(int argc, char** argv) {
  CLI::App app("Runs whole clusters in virtual time, with faults.",
               "penstock-sim");
  app.option_defaults()->always_capture_default();
  penstock::Action action;
  penstock::AddSimCommands(app, "penstock-sim", action);
  return penstock::RunCommand(app, action, argc, argv);
}
