#include <cstdlib>
#include <iostream>

#include "tools/simulator/trace/trace_command.h"

int main(int argc, char** argv) {
  CLI::App app("Simulates a cluster.", "penstock-sim");
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default();
  std::function<absl::Status()> action;
  penstock::AddTraceCommand(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : 2;
  }
  const absl::Status status = action();
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << "penstock-sim: " << status.message() << "\n";
  return EXIT_FAILURE;
}
