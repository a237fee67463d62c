#include <iostream>

#include "absl/strings/str_join.h"
#include "tools/simulator/cli/sim_command.h"
#include "tools/simulator/scenario.h"

namespace penstock {

void AddSimListCommand(CLI::App& app, Action& action) {
  CLI::App* list = app.add_subcommand("list", "Named scenarios.");
  list->callback([&action] {
    action = [] {
      std::cout << "Rows are those of docs/reliability.md.\n\n";
      for (const Scenario& scenario : Scenarios()) {
        std::cout << scenario.name << "\n  row "
                  << absl::StrJoin(scenario.rows, ", ") << ": "
                  << scenario.symptom << "\n  expected: " << scenario.expected
                  << "\n";
      }
      return absl::OkStatus();
    };
  });
}

}  // namespace penstock
