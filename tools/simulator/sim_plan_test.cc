#include "tools/simulator/sim_plan.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/plan_text.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

SimPlan SmallPlan() {
  SimPlan plan;
  plan.cluster.seed = 5;
  plan.cluster.decode_workers = 2;
  for (int i = 0; i < 6; ++i) {
    SimRequest request;
    request.at = absl::Milliseconds(10 * i);
    request.seed = static_cast<uint64_t>(100 + i);
    request.prompt = 40 + i;
    request.max_tokens = 10;
    plan.requests.push_back(request);
  }
  plan.requests[2].stop = "7><";
  plan.requests[3].n = 3;
  plan.requests[4].best_of = 2;
  plan.requests[5].timeout = absl::Milliseconds(3);
  plan.faults.push_back({FaultKind::kKill, absl::Milliseconds(25),
                         absl::Milliseconds(200), "decode0"});
  return plan;
}

TEST(RunPlanTest, EqualPlansGiveEqualRuns) {
  const SimReport first = RunPlan(SmallPlan());
  EXPECT_EQ(first.promise, "") << first.violation;
  EXPECT_EQ(first.requests, 6);
  EXPECT_EQ(first.finished + first.failed + first.refused, 6);
  EXPECT_GT(first.finished, 2);
  EXPECT_EQ(first.faults, 1);
  EXPECT_EQ(RunPlan(SmallPlan()).log_hash, first.log_hash);
  SimPlan other = SmallPlan();
  other.cluster.seed = 6;
  EXPECT_NE(RunPlan(other).log_hash, first.log_hash);
}

TEST(RunPlanTest, WhatCannotDrainInTimeBreaksAPromise) {
  SimPlan plan = SmallPlan();
  plan.faults.clear();
  plan.requests[0].max_tokens = 300;
  plan.drain_bound = absl::Milliseconds(100);
  const SimReport report = RunPlan(plan);
  EXPECT_EQ(report.promise, "everything drains");
  EXPECT_THAT(report.violation, HasSubstr("request 0"));
  EXPECT_FALSE(report.last_events.empty());
}

TEST(RunPlanTest, RandomPlansKeepEveryPromise) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SimReport report = RunPlan(RandomPlan(seed));
    EXPECT_EQ(report.promise, "")
        << "seed " << seed << ": " << report.violation;
  }
}

TEST(PlanTextTest, SaysAllOfAPlan) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const SimPlan plan = RandomPlan(seed);
    const std::string text = FormatPlan(plan);
    auto parsed = ParsePlan("# a comment\n\n" + text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(FormatPlan(*parsed), text);
    EXPECT_EQ(parsed->requests, plan.requests);
    EXPECT_EQ(parsed->faults, plan.faults);
  }
}

TEST(PlanTextTest, WhatItSaysRunsTheSame) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const SimPlan plan = RandomPlan(seed);
    auto parsed = ParsePlan(FormatPlan(plan));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(RunPlan(*parsed).log_hash, RunPlan(plan).log_hash) << seed;
  }
}

TEST(PlanTextTest, NamesTheWrongLine) {
  auto error = [](absl::string_view text) {
    return std::string(ParsePlan(text).status().message());
  };
  EXPECT_EQ(error("seed 1\ncolour 7\n"), "line 2: unknown field colour");
  EXPECT_EQ(error("request n many"), "line 1: n cannot be \"many\"");
  EXPECT_EQ(error("request at"), "line 1: a field without a value");
  EXPECT_EQ(error("seed"), "line 1: not a name and a value");
  EXPECT_THAT(error("\nfault flood at 1s"), HasSubstr("line 2: "));
}

TEST(PlanTextTest, RefusesWhatCannotRun) {
  const std::string worker = "worker name a roles both";
  const std::pair<std::string, const char*> wrong[] = {
      {"fault kill at 1s host nobody", "line 1: host is \"nobody\""},
      {"fault delay at 1s host router peer nobody", "line 1: peer"},
      {"fault kill at 1s", "line 1: host"},
      {"fault kill at inf host router", "line 1: at"},
      {"fault slow at 1s host decode0 amount nan", "line 1: amount"},
      {"fault clock-drift at 1s host router amount 0", "line 1: amount"},
      {"fault late-write at 1s host decode0 amount 2", "line 1: amount"},
      {worker + "\n" + worker, "line 2: name"},
      {"worker name router roles both", "line 1: name"},
      {"worker name a", "line 1: roles"},
      {worker + " blocks 0", "line 1: blocks"},
      {worker + " blocks 2000000000", "line 1: blocks"},
      {worker + " max_rows 0", "line 1: max_rows"},
      {worker + " transports tcp,tcp", "line 1: transports"},
      {worker + " lease 0s", "line 1: lease"},
      {worker + " lease 1s renew_every 2s", "line 1: renew_every"},
      {"request prompt 0", "line 1: prompt"},
      {"request prompt 1000000000", "line 1: prompt"},
      {"request at -1s", "line 1: at"},
      {"request n 0", "line 1: n"},
      {"request n 3 best_of 2", "line 1: best_of"},
      {"request temperature nan", "line 1: sampling.temperature"},
      {"prefill_workers 1000000", "line 1: prefill_workers"},
      {"seed 3\nmax_attempts 0", "line 2: max_attempts"},
      {"latency 1h", "line 1: latency"},
      {"drain_bound inf", "line 1: drain_bound"},
      {"prefill_workers 0\ndecode_workers 0", "no worker"},
  };
  for (const auto& [text, said] : wrong) {
    const absl::Status status = ParsePlan(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(said)) << text;
  }
}

TEST(PlanTextTest, AFaultMayComeBeforeItsWorker) {
  auto plan =
      ParsePlan("fault kill at 1s host late\nworker name late roles both\n");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->faults[0].host, "late");
}

// Breaks when fault 3 and request 4 are both there.
SimReport FakeRun(const SimPlan& plan) {
  SimReport report;
  const bool fault =
      std::any_of(plan.faults.begin(), plan.faults.end(),
                  [](const Fault& fault) { return fault.amount == 3; });
  const bool request = std::any_of(
      plan.requests.begin(), plan.requests.end(),
      [](const SimRequest& request) { return request.prompt == 4; });
  if (fault && request) report.promise = "a promise";
  // Another promise is no reason to go on.
  if (!fault && request) report.promise = "another promise";
  return report;
}

TEST(ShrinkTest, LeavesWhatIsNeededOnly) {
  SimPlan plan;
  for (int i = 0; i < 20; ++i) {
    Fault fault;
    fault.amount = i;
    plan.faults.push_back(fault);
    SimRequest request;
    request.prompt = i;
    plan.requests.push_back(request);
  }
  const SimPlan smaller = Shrink(plan, 1000, FakeRun);
  ASSERT_EQ(smaller.faults.size(), 1u);
  EXPECT_EQ(smaller.faults[0].amount, 3);
  ASSERT_EQ(smaller.requests.size(), 1u);
  EXPECT_EQ(smaller.requests[0].prompt, 4);
}

TEST(ShrinkTest, RunsNoMoreThanItMay) {
  SimPlan plan;
  for (int i = 0; i < 20; ++i) {
    Fault fault;
    fault.amount = i;
    plan.faults.push_back(fault);
  }
  SimRequest request;
  request.prompt = 4;
  plan.requests.push_back(request);
  int runs = 0;
  Shrink(plan, 7, [&](const SimPlan& smaller) {
    ++runs;
    return FakeRun(smaller);
  });
  EXPECT_EQ(runs, 7);
}

}  // namespace
}  // namespace penstock
