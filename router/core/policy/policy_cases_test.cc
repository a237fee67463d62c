// What every policy promises, and what tells them apart.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/policy/policy_fixture.h"

namespace penstock {
namespace {

class EveryPolicyTest : public PolicyFixture,
                        public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { options_.kind = *ParsePolicy(GetParam()); }
};

TEST_P(EveryPolicyTest, Case18TheThresholdItselfGoesToPrefill) {
  AddPrefill("p");
  AddDecode("d");
  EXPECT_EQ(PrefillOf(Place(16)), "p");
  EXPECT_EQ(PrefillOf(Place(15)), "(decode)");
  // Relative to what decode holds: 10 blocks cached, 16 or 15 tokens more.
  Store("d", 100, 10);
  Store("p", 100, 10);
  EXPECT_EQ(PrefillOf(Place(176, 100)), "p");
  EXPECT_EQ(PrefillOf(Place(175, 100)), "(decode)");
}

TEST_P(EveryPolicyTest, Case25WhatIsNotReadyIsNeverChosen) {
  AddPrefill("p");
  AddDecode("d");
  for (WorkerHealth health : {WorkerHealth::kLoading, WorkerHealth::kDraining,
                              WorkerHealth::kFailed}) {
    const int tail = static_cast<int>(health);
    Add(Info(absl::StrCat("x", tail), true, true), health);
  }
  // As does a breaker of one leg or the other.
  AddPrefill("broken_prefill");
  registry_.Veto(LegKind::kPrefill, {"broken_prefill", Incarnation(1)}, true);
  Add(Info("half_broken", true, true));
  registry_.Veto(LegKind::kPrefill, {"half_broken", Incarnation(1)}, true);
  registry_.Veto(LegKind::kDecode, {"half_broken", Incarnation(1)}, true);
  for (const char* name : {"x2", "broken_prefill", "half_broken"}) {
    Store(name, 100, 20);
  }
  kept_ = {{{"broken_prefill", Incarnation(1)}, 300}};
  std::set<std::string> prefills;
  for (int i = 0; i < 100; ++i) {
    session_ = i % 3;
    const Placement placement = PlaceAndHold(400, 100);
    prefills.insert(PrefillOf(placement));
    EXPECT_EQ(placement.decode.worker.name, "d");
  }
  kept_.clear();
  held_.clear();
  registry_.Veto(LegKind::kDecode, {"half_broken", Incarnation(1)}, false);
  std::set<std::string> decodes;
  for (int i = 0; i < 100; ++i) {
    const Placement placement = PlaceAndHold(400, i * 1000);
    prefills.insert(PrefillOf(placement));
    decodes.insert(placement.decode.worker.name);
  }
  EXPECT_EQ(decodes, (std::set<std::string>{"d", "half_broken"}));
  prefills.erase("(decode)");
  EXPECT_EQ(prefills, std::set<std::string>{"p"});
  Report("d", {}, WorkerHealth::kDraining);
  Report("half_broken", {}, WorkerHealth::kDraining);
  EXPECT_EQ(ErrorInfoOf(Place(400).status()).reason, ErrorReason::kNoWorkers);
}

TEST_P(EveryPolicyTest, TheOneWithRoomGetsAllUntilNoneHas) {
  for (int i = 0; i < 4; ++i) {
    WorkerInfo info = Info(absl::StrCat("d", i), false, true);
    info.max_sequences = 5;
    Add(info);
    WorkerLoad full;
    full.active_requests = full.queued_requests = 5;
    if (i < 3) Report(info.key.name, full);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(PlaceAndHold(64).decode.worker.name, "d3");
  }
  EXPECT_EQ(ErrorInfoOf(Place(64).status()).reason, ErrorReason::kQueueFull);
}

TEST_P(EveryPolicyTest, AvoidedAndUnfitWorkersAreLeftOut) {
  for (const char* name : {"p1", "p2", "p3"}) AddPrefill(name);
  for (const char* name : {"d1", "d2"}) AddDecode(name);
  WorkerInfo other = Info("other", true, false);
  other.layout = LayoutId(2);
  Add(other);
  WorkerInfo small = Info("small", true, true);
  small.total_blocks = 10;
  Add(small);
  avoid_ = {"p1", "d2", "gone"};
  std::map<std::string, int> prefills;
  for (int i = 0; i < 100; ++i) {
    const Placement placement = PlaceAndHold(400, i * 1000);
    EXPECT_EQ(placement.decode.worker.name, "d1");
    ++prefills[PrefillOf(placement)];
  }
  EXPECT_EQ(prefills.size(), 2u);
  EXPECT_GT(prefills["p2"], 0);
  EXPECT_GT(prefills["p3"], 0);
}

TEST_P(EveryPolicyTest, EqualDrawsGiveEqualAnswers) {
  for (int i = 0; i < 5; ++i) AddDecode(absl::StrCat("d", i));
  std::vector<std::string> first, second;
  for (auto* out : {&first, &second}) {
    random_ = SeededRandom(42);
    for (int i = 0; i < 50; ++i) {
      out->push_back(Place(64, i * 1000)->decode.worker.name);
    }
  }
  EXPECT_EQ(first, second);
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicyTest,
                         ::testing::ValuesIn(PolicyNames()),
                         [](const auto& info) { return info.param; });

class PolicyCasesTest : public PolicyFixture {
 protected:
  // Requests of distinct prompts: how many each worker got of each leg.
  std::map<std::string, int> Counts(int requests, int prompt_tokens = 64) {
    std::map<std::string, int> counts;
    for (int i = 0; i < requests; ++i) {
      const Placement placement =
          PlaceAndHold(prompt_tokens, 1000000 + i * 10000, 1);
      ++counts[placement.decode.worker.name];
      if (placement.prefill.has_value()) ++counts[PrefillOf(placement)];
    }
    return counts;
  }
  void AddCluster(int prefills, int decodes) {
    for (int i = 0; i < prefills; ++i) AddPrefill(absl::StrCat("p", i));
    for (int i = 0; i < decodes; ++i) AddDecode(absl::StrCat("d", i));
  }
};

TEST_F(PolicyCasesTest, Case24RoundRobinIsExactOnBothSides) {
  options_.kind = PolicyKind::kRoundRobin;
  AddCluster(4, 4);
  for (const auto& [name, count] : Counts(40)) EXPECT_EQ(count, 10) << name;
}

// Each leg has its own turn: a request without a prefill leg takes none.
TEST_F(PolicyCasesTest, RoundRobinsTurnsAreOfEachLeg) {
  options_.kind = PolicyKind::kRoundRobin;
  AddCluster(2, 3);
  std::vector<std::string> prefills, decodes;
  for (int i = 0; i < 12; ++i) {
    const Placement placement = PlaceAndHold(i % 2 == 0 ? 64 : 8);
    decodes.push_back(placement.decode.worker.name);
    if (placement.prefill.has_value()) {
      prefills.push_back(placement.prefill->worker.name);
    }
  }
  EXPECT_EQ(decodes,
            (std::vector<std::string>{"d0", "d1", "d2", "d0", "d1", "d2", "d0",
                                      "d1", "d2", "d0", "d1", "d2"}));
  EXPECT_EQ(prefills,
            (std::vector<std::string>{"p0", "p1", "p0", "p1", "p0", "p1"}));
}

// Chi-squared with 9 degrees of freedom: above 27.9 once in a thousand.
TEST_F(PolicyCasesTest, RandomIsUniform) {
  options_.kind = PolicyKind::kRandom;
  AddCluster(0, 10);
  double chi = 0;
  for (const auto& [name, count] : Counts(1000)) {
    chi += (count - 100.0) * (count - 100.0) / 100;
  }
  EXPECT_LT(chi, 27.9);
}

// The known gap: of n balls in n bins the fullest has about ln n / ln ln n with
// one choice (5 of 1000) and ln ln n / ln 2 + 1 with two (3 to 4).
TEST_F(PolicyCasesTest, TwoChoicesAreBetterThanOne) {
  AddCluster(0, 300);
  auto fullest = [&](PolicyKind kind) {
    options_.kind = kind;
    held_.clear();
    int most = 0;
    for (const auto& [name, count] : Counts(300)) most = std::max(most, count);
    return most;
  };
  EXPECT_GE(fullest(PolicyKind::kRandom), 4);
  EXPECT_LE(fullest(PolicyKind::kPowerOfTwo), 3);
  EXPECT_EQ(fullest(PolicyKind::kLeastLoad), 1);
}

TEST_F(PolicyCasesTest, LeastLoadEvensOutUnequalWork) {
  options_.kind = PolicyKind::kLeastLoad;
  AddCluster(2, 1);
  int on_first = 0;
  Placement longest = PlaceAndHold(8000, 1, 1);
  for (int i = 0; i < 10; ++i) {
    on_first += PrefillOf(PlaceAndHold(400, 100000 + i * 1000, 1)) ==
                longest.prefill->worker.name;
  }
  EXPECT_EQ(on_first, 0) << "8000 tokens take longer than 10 times 400";
}

TEST_F(PolicyCasesTest, Case26ASessionSticksAndRebindsOnce) {
  options_.kind = PolicyKind::kSessionSticky;
  AddCluster(2, 4);
  session_ = 5;
  const std::string home = PlaceAndHold(64).decode.worker.name;
  const std::string prefill = PrefillOf(PlaceAndHold(64));
  for (int i = 0; i < 20; ++i) {
    // Others come and go, and the home is the busiest by far.
    session_ = 100 + i;
    PlaceAndHold(64);
    session_ = 5;
    const Placement placement = PlaceAndHold(64);
    EXPECT_EQ(placement.decode.worker.name, home);
    EXPECT_EQ(PrefillOf(placement), prefill);
  }
  registry_.Lose({home, Incarnation(1)}, absl::UnavailableError("x"));
  const std::string next = PlaceAndHold(64).decode.worker.name;
  EXPECT_NE(next, home);
  AddDecode(home);  // back, and idle
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(PlaceAndHold(64).decode.worker.name, next);
  }
  // A worker that restarts has forgotten the session.
  WorkerInfo again = Info(next, false, true);
  again.key.incarnation = Incarnation(2);
  Add(again);
  WorkerLoad busy;
  busy.active_requests = 500;
  busy.health = WorkerHealth::kReady;
  ASSERT_TRUE(registry_.Report(again.key, busy).ok());
  EXPECT_NE(PlaceAndHold(64).decode.worker.name, next);
}

// Of 6 workers, 4 of each leg are named, cheapest first, and who was chosen.
TEST_F(PolicyCasesTest, ARecordSaysWhomElseThereWasToChoose) {
  options_.kind = PolicyKind::kRoundRobin;
  AddCluster(6, 6);
  Store("p4", 100, 8);
  Store("d3", 100, 2);
  const std::vector<BlockHash> chain = Chain(100, 10);
  RequestFacts facts;
  facts.prompt_tokens = 165;
  facts.max_tokens = 64;
  facts.chain = chain;
  const PlacementPolicy policy(options_, *CostModel::Create(costs_));
  EXPECT_EQ(policy.Place(facts, registry_.view(), random_)->record, nullptr);
  facts.record = true;
  const auto record = policy.Place(facts, registry_.view(), random_)->record;
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->policy, "round_robin");
  ASSERT_TRUE(record->prefill.has_value());
  EXPECT_EQ(record->decode.candidates, 6);
  EXPECT_EQ(record->prefill->candidates, 6);
  ASSERT_EQ(record->prefill->best.size(), 4u);
  EXPECT_EQ(record->prefill->best[0].worker, "p4");
  EXPECT_EQ(record->prefill->best[0].hit_tokens, 128);
  EXPECT_EQ(record->prefill->chosen.worker, "p0");
  EXPECT_EQ(record->prefill->chosen.hit_tokens, 0);
  EXPECT_EQ(record->decode.best[0].worker, "d3");
  EXPECT_EQ(record->decode.chosen.worker, "d0");
  // 2 ms + 0.7 ms a token + 0.1 us a pair, and 22.5 KiB a token at 1 ms a MiB.
  auto prefill_us = [](double n, double cached) {
    return 2000 + 700 * n + 0.1 * (n * cached + n * (n - 1) / 2);
  };
  const double lost_prefill = prefill_us(165, 0) - prefill_us(37, 128);
  const double lost_transfer = 32 * 23040.0 / (1 << 20) * 1000;
  EXPECT_NEAR(absl::ToDoubleMicroseconds(record->Regret()),
              lost_prefill + lost_transfer, 1);
}

TEST_F(PolicyCasesTest, RequestsOfNoSessionGoWhereTheLeastWorkIs) {
  options_.kind = PolicyKind::kSessionSticky;
  AddCluster(0, 4);
  for (const auto& [name, count] : Counts(40)) EXPECT_EQ(count, 10) << name;
}

// Where the hash sends prompts while nobody has load.
TEST_F(PolicyCasesTest, ConsistentHashMovesOnlyWhatAWorkerHad) {
  options_.kind = PolicyKind::kConsistentHash;
  AddCluster(0, 5);
  auto homes = [&] {
    std::vector<std::string> homes;
    for (int i = 0; i < 500; ++i) {
      homes.push_back(Place(64, 1000 + i * 100)->decode.worker.name);
    }
    return homes;
  };
  const std::vector<std::string> before = homes();
  EXPECT_EQ(before, homes());
  std::map<std::string, int> counts;
  for (const std::string& home : before) ++counts[home];
  // Chi-squared with 4 degrees of freedom: above 18.5 once in a thousand.
  double chi = 0;
  for (int i = 0; i < 5; ++i) {
    const double off = counts[absl::StrCat("d", i)] - 100;
    chi += off * off / 100;
  }
  EXPECT_LT(chi, 18.5);
  registry_.Lose({"d2", Incarnation(1)}, absl::UnavailableError("x"));
  const std::vector<std::string> after = homes();
  for (size_t i = 0; i < before.size(); ++i) {
    if (before[i] != "d2") {
      EXPECT_EQ(after[i], before[i]);
    } else {
      EXPECT_NE(after[i], "d2");
    }
  }
}

// One prompt for all: nobody gets more than a quarter above the mean, and one.
TEST_F(PolicyCasesTest, ConsistentHashBoundsTheLoad) {
  options_.kind = PolicyKind::kConsistentHash;
  AddCluster(0, 4);
  std::map<std::string, int> counts;
  for (int i = 1; i <= 100; ++i) {
    ++counts[PlaceAndHold(64, 777).decode.worker.name];
    for (const auto& [name, count] : counts) {
      EXPECT_LE(count, 1.25 * (i + 1) / 4 + 1) << name;
    }
  }
  EXPECT_EQ(counts.size(), 4u);
}

}  // namespace
}  // namespace penstock
