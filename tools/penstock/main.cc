#include "tools/penstock/command.h"

int main(int argc, char** argv) {
  CLI::App app("Serves large language models from prefill and decode workers.",
               "penstock");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();

  penstock::Action action;
  CLI::App* bench = app.add_subcommand("bench", "Measurements.");
  bench->require_subcommand(1);
  penstock::AddBenchCacheCommand(*bench, action);
  penstock::AddBenchEngineCommand(*bench, action);
  penstock::AddBenchKvCommand(*bench, action);
  penstock::AddBenchRouterCommand(*bench, action);
  penstock::AddBenchServeCommand(*bench, action);
  penstock::AddChatCommand(app, action);
  penstock::AddDetokenizeCommand(app, action);
  penstock::AddDoctorCommand(app, action);
  penstock::AddGenerateCommand(app, action);
  penstock::AddModelsCommand(app, action);
  penstock::AddSimCommands(
      *app.add_subcommand("sim", "Clusters in virtual time, with faults."),
      "penstock sim", action);
  penstock::AddTokenizeCommand(app, action);
  penstock::AddUpCommand(app, action);

  return penstock::RunCommand(app, action, argc, argv);
}
