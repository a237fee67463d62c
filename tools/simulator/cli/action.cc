#include "tools/simulator/cli/action.h"

#include <cstdlib>
#include <iostream>

namespace penstock {
namespace {

constexpr int kError = 1;
constexpr int kWrongUsage = 2;

}  // namespace

int RunCommand(CLI::App& app, const Action& action, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are successes and go to stdout.
    return app.exit(error) == 0 ? EXIT_SUCCESS : kWrongUsage;
  }
  const absl::Status status = action();
  if (status.ok()) return EXIT_SUCCESS;
  std::cout.flush();
  std::cerr << app.get_name() << ": " << status.message() << "\n";
  return kError;
}

}  // namespace penstock
