// Each fault known from the field, as a run with its expected value.

#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tools/simulator/scenario.h"

namespace penstock {

void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

namespace {

class ScenariosTest : public testing::TestWithParam<Scenario> {};

TEST_P(ScenariosTest, HasItsExpectedValue) {
  const Scenario& scenario = GetParam();
  for (uint64_t seed : {1, 2, 3}) {
    ScenarioResult result = scenario.run(seed);
    EXPECT_EQ(result.failure, "")
        << "replay: penstock sim run " << scenario.name << " --seed " << seed
        << "\nmeasured: " << result.measured;
    EXPECT_NE(result.measured, "");
    EXPECT_FALSE(result.log.empty());
    if (seed > 1) continue;
    ScenarioResult again = scenario.run(seed);
    EXPECT_EQ(result.log_hash, again.log_hash);
    EXPECT_EQ(result.measured, again.measured);
  }
}

std::string NameOf(const testing::TestParamInfo<Scenario>& info) {
  std::string name;
  for (char c : info.param.name) name += c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ScenariosTest, testing::ValuesIn(Scenarios()),
                         NameOf);

TEST(ScenarioListTest, EveryRowHasOneAndNamesAreUnique) {
  std::set<int> rows;
  std::set<std::string> names;
  for (const Scenario& scenario : Scenarios()) {
    rows.insert(scenario.rows.begin(), scenario.rows.end());
    EXPECT_TRUE(names.emplace(scenario.name).second) << scenario.name;
    EXPECT_FALSE(scenario.symptom.empty());
    EXPECT_FALSE(scenario.expected.empty());
  }
  for (int row = 1; row <= 32; ++row) EXPECT_TRUE(rows.contains(row)) << row;
  EXPECT_LE(*rows.rbegin(), 32);
}

// The table of the documentation, a line for each.
std::string TableOf(const std::vector<Scenario>& scenarios) {
  std::string table =
      "| Row | Run | What is seen where this goes wrong | Expected here |\n"
      "|---|---|---|---|\n";
  for (const Scenario& scenario : scenarios) {
    absl::StrAppend(&table, "| ", absl::StrJoin(scenario.rows, ", "), " | `",
                    scenario.name, "` | ", scenario.symptom, " | ",
                    scenario.expected, " |\n");
  }
  return table;
}

TEST(ScenarioListTest, IsWhatTheDocumentationShows) {
  std::ifstream file(PENSTOCK_TEST_DATA "/../../docs/reliability.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(TableOf(Scenarios())), std::string::npos)
      << "docs/reliability.md should have:\n"
      << TableOf(Scenarios());
}

}  // namespace
}  // namespace penstock
