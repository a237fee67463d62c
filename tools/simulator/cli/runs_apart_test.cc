#include "tools/simulator/cli/runs_apart.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

TEST(RunsApartTest, TheReportIsTheSameAsOfARunHere) {
  const SimPlan plan = RandomPlan(3);
  const SimReport here = RunPlan(plan);
  const SimReport apart = RunPlanApart(plan);
  EXPECT_EQ(apart.promise, here.promise);
  EXPECT_EQ(apart.log_hash, here.log_hash);
  EXPECT_EQ(apart.events, here.events);
  EXPECT_EQ(apart.tokens, here.tokens);
  EXPECT_EQ(apart.requests, here.requests);
  EXPECT_EQ(apart.virtual_time, here.virtual_time);
  EXPECT_EQ(apart.faults_by_kind, here.faults_by_kind);
}

TEST(RunsApartTest, ADeadRunIsAReport) {
  SimPlan plan;
  plan.faults.push_back({FaultKind::kKill, absl::Seconds(1),
                         absl::ZeroDuration(), "a host that nobody knows"});
  const SimReport report = RunPlanApart(plan);
  EXPECT_EQ(report.promise, kProcessLives);
  EXPECT_THAT(report.violation, HasSubstr("a host that nobody knows"));
}

TEST(RunsApartTest, EverySeedReportsOnceFromAnyNumberOfProcesses) {
  for (int jobs : {1, 3, 8}) {
    std::map<uint64_t, uint64_t> hashes;
    RunSeedsApart({5, 9}, jobs, [&](uint64_t seed, const SimReport& report) {
      EXPECT_TRUE(hashes.emplace(seed, report.log_hash).second) << seed;
      return true;
    });
    ASSERT_EQ(hashes.size(), 5u) << jobs;
    EXPECT_EQ(hashes[7], RunPlan(RandomPlan(7)).log_hash);
  }
}

TEST(RunsApartTest, StopsWhenToldTo) {
  int reports = 0;
  RunSeedsApart({1, 1000000}, 2, [&](uint64_t, const SimReport&) {
    // Meanwhile the others' reports pile up.
    for (uint64_t seed = 1; seed <= 10; ++seed) RunPlan(RandomPlan(seed));
    return ++reports < 3;
  });
  EXPECT_EQ(reports, 3);
}

}  // namespace
}  // namespace penstock
