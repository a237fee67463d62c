#include <cstdlib>
#include <iostream>

#include "tools/simulator/cli/sim_command.h"

namespace {

constexpr int kError = 1;
constexpr int kWrongUsage = 2;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs whole clusters in virtual time, with faults.",
               "penstock-sim");
  app.option_defaults()->always_capture_default();
  penstock::Action action;
  penstock::AddSimCommands(app, "penstock-sim", action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : kWrongUsage;
  }
  const absl::Status status = action();
  if (!status.ok()) {
    std::cout.flush();
    std::cerr << "penstock-sim: " << status.message() << "\n";
    return kError;
  }
  return EXIT_SUCCESS;
}
