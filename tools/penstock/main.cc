#include <cstdlib>
#include <iostream>

#include "tools/penstock/command.h"

namespace {

constexpr int kError = 1;
constexpr int kWrongUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Serves large language models from prefill and decode workers.",
               "penstock");
  app.set_version_flag("--version", "penstock " PENSTOCK_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();

  penstock::Action action;
  CLI::App* bench = app.add_subcommand("bench", "Measurements.");
  bench->require_subcommand(1);
  penstock::AddBenchEngineCommand(*bench, action);
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

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are successes and go to stdout.
    return app.exit(error) == 0 ? EXIT_SUCCESS : kWrongUsage;
  }
  const absl::Status status = action();
  if (!status.ok()) {
    std::cout.flush();
    std::cerr << "penstock: " << status.message() << "\n";
    return kError;
  }
  return EXIT_SUCCESS;
}
