// Plans that broke a promise once: tests/data/plans.

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "tools/simulator/plan_text.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {
namespace {

TEST(PlansTest, WhatBrokeAPromiseOnceHoldsIt) {
  int plans = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(PENSTOCK_TEST_DATA "/plans")) {
    if (file.path().extension() != ".plan") continue;
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    auto plan = ParsePlan(text.str());
    ASSERT_TRUE(plan.ok()) << file.path() << ": " << plan.status();
    EXPECT_EQ(RunPlan(*plan).violation, "") << file.path();
    ++plans;
  }
  EXPECT_GT(plans, 0);
}

}  // namespace
}  // namespace penstock
