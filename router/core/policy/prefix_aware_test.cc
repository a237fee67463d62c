#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/policy/policy_fixture.h"

namespace penstock {
namespace {

class PrefixAwareTest : public PolicyFixture {};

// Decode has the prompt but for a block, and prefill nothing of it.
TEST_F(PrefixAwareTest, WhatDecodeHasIsNotComputedAnew) {
  AddPrefill("p");
  AddDecode("d");
  Store("d", 100, 30);
  EXPECT_EQ(PrefillOf(Place(500, 100)), "(decode)");
  EXPECT_EQ(PrefillOf(Place(500, 5000)), "p");
}

// The threshold follows the prediction: when the prefill workers' queue is
// longer than what a prefill beside four answers would stop in all (4 + 1 times
// the prompt's 0.7 s), decode does it.
TEST_F(PrefixAwareTest, ASaturatedPrefillPoolSpillsToIdleDecodes) {
  AddPrefill("p");
  AddDecode("d");
  WorkerLoad load;
  load.queued_requests = 2;
  load.queued_tokens = 2000;
  Report("p", load);
  EXPECT_EQ(PrefillOf(Place(1000)), "p");
  EXPECT_EQ(PrefillOf(Place(100)), "(decode)");
  load.queued_requests = 6;
  load.queued_tokens = 6000;
  Report("p", load);
  EXPECT_EQ(PrefillOf(Place(1000)), "(decode)");
  WorkerLoad busy;
  busy.active_requests = 20;
  Report("d", busy);
  EXPECT_EQ(PrefillOf(Place(1000)), "p");
}

// A machine that measured a quarter of the assumed times is given prompts until
// its queue is as long as one on the other.
TEST_F(PrefixAwareTest, AFasterMachineIsGivenMore) {
  options_.spill_prefill = false;
  AddPrefill("slow");
  AddPrefill("fast");
  AddDecode("d");
  WorkerLoad load;
  load.costs = {.step = 0.5e-3, .row = 0.175e-3, .pair = 0.25e-7};
  Report("fast", load);
  std::map<std::string, int> given;
  for (int i = 0; i < 50; ++i) ++given[PrefillOf(PlaceAndHold(400))];
  EXPECT_NEAR(given["fast"], 40, 1);  // a tie may go to either
  EXPECT_NEAR(given["slow"], 10, 1);
}

TEST_F(PrefixAwareTest, AFasterMachineDecodesMore) {
  AddDecode("slow");
  AddDecode("fast");
  WorkerLoad load;
  load.costs = {.step = 0.5e-3, .row = 0.35e-3, .pair = 0.5e-7};
  Report("fast", load);
  std::map<std::string, int> given;
  for (int i = 0; i < 60; ++i) {
    ++given[PlaceAndHold(10, 900000, 128).decode.worker.name];
  }
  EXPECT_GT(given["fast"], 2 * given["slow"]);
  EXPECT_GT(given["slow"], 5);
}

TEST_F(PrefixAwareTest, WithoutSpillingOnlyShortPromptsStayAtDecode) {
  options_.spill_prefill = false;
  AddPrefill("p");
  AddDecode("d");
  Store("d", 100, 30);
  WorkerLoad load;
  load.queued_requests = 6;
  load.queued_tokens = 6000;
  Report("p", load);
  EXPECT_EQ(PrefillOf(Place(500, 100)), "p");
  EXPECT_EQ(PrefillOf(Place(495, 100)), "(decode)");
}

TEST_F(PrefixAwareTest, WithoutPrefillDecodeDoesAll) {
  AddDecode("d");
  auto placement = Place(1000);
  EXPECT_EQ(PrefillOf(placement), "(decode)");
  EXPECT_EQ(placement->decode.worker.name, "d");
}

TEST_F(PrefixAwareTest, AScoreGeneratesNothingAndIsPlacedToo) {
  AddPrefill("p");
  AddDecode("d");
  EXPECT_TRUE(Place(100, 900000, /*max_tokens=*/0).ok());
}

TEST_F(PrefixAwareTest, WithoutDecodeThereAreNoWorkers) {
  EXPECT_EQ(ErrorInfoOf(Place(100).status()).reason, ErrorReason::kNoWorkers);
  AddPrefill("p");
  EXPECT_EQ(ErrorInfoOf(Place(100).status()).reason, ErrorReason::kNoWorkers);
}

TEST_F(PrefixAwareTest, TheLongestCachedPrefixWinsAmongIdleWorkers) {
  for (const char* name : {"p1", "p2", "p3"}) AddPrefill(name);
  for (const char* name : {"d1", "d2", "d3"}) AddDecode(name);
  Store("p1", 100, 5);
  Store("p2", 100, 9);
  Store("d3", 100, 4);
  Store("d2", 100, 2);
  auto placement = Place(320, 100);
  EXPECT_EQ(PrefillOf(placement), "p2");
  EXPECT_EQ(placement->prefill->cached_tokens, 9 * 16);
  EXPECT_EQ(placement->decode.worker.name, "d3");
  EXPECT_EQ(placement->decode.cached_tokens, 4 * 16);
}

// A prompt of full blocks that is cached whole: the last token is computed
// again, since its logits are needed, and with it its block.
TEST_F(PrefixAwareTest, AWholeHitLeavesOneBlock) {
  AddDecode("d");
  Store("d", 100, 4);
  EXPECT_EQ(Place(64, 100)->decode.cached_tokens, 48);
  EXPECT_EQ(Place(65, 100)->decode.cached_tokens, 64);
}

TEST_F(PrefixAwareTest, Case19AColdRequestGoesToTheIdleWorkerWithALargeTree) {
  AddDecode("busy");
  AddDecode("idle");
  Store("idle", 5000, 4000);
  WorkerLoad load;
  load.active_requests = 3;
  Report("busy", load);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Place(64)->decode.worker.name, "idle");
  }
}

// Chi-squared with 9 degrees of freedom: above 27.9 once in a thousand.
TEST_F(PrefixAwareTest, Case20TiesAreSpreadUniformly) {
  for (int i = 0; i < 10; ++i) AddDecode(absl::StrCat("d", i));
  std::map<std::string, int> counts;
  for (int i = 0; i < 1000; ++i) ++counts[Place(64)->decode.worker.name];
  double chi = 0;
  for (int i = 0; i < 10; ++i) {
    double off = counts[absl::StrCat("d", i)] - 100;
    chi += off * off / 100;
  }
  EXPECT_LT(chi, 27.9);
}

TEST_F(PrefixAwareTest, Case21ABurstOfEqualRequestsIsSpread) {
  AddPrefill("p1");
  AddPrefill("p2");
  AddDecode("d1");
  AddDecode("d2");
  Store("p1", 100, 32);
  Store("d1", 100, 32);
  std::map<std::string, int> decodes, prefills;
  for (int i = 0; i < 64; ++i) {
    Placement placement = PlaceAndHold(1024, 100, 64);
    ++decodes[placement.decode.worker.name];
    ++prefills[PrefillOf(placement)];
  }
  // The owner gets more, but not all.
  for (const char* name : {"d1", "d2"}) EXPECT_GE(decodes[name], 16) << name;
  for (const char* name : {"p1", "p2"}) EXPECT_GE(prefills[name], 8) << name;
  EXPECT_GE(prefills["p1"], prefills["p2"]);
}

TEST_F(PrefixAwareTest, Case22ASaturatedOwnerSpillsToTheNextBestOwner) {
  AddPrefill("owner");
  AddPrefill("second");
  AddPrefill("third");
  AddDecode("d");
  Store("owner", 100, 60);
  Store("second", 100, 30);
  EXPECT_EQ(PrefillOf(Place(1024, 100)), "owner");
  WorkerLoad load;
  load.queued_tokens = 20000;
  Report("owner", load);
  EXPECT_EQ(PrefillOf(Place(1024, 100)), "second");
}

TEST_F(PrefixAwareTest, Case23LongPromptsAreBalanced) {
  for (const char* name : {"p1", "p2", "p3", "p4"}) AddPrefill(name);
  AddDecode("d");
  std::map<std::string, int> counts;
  for (int i = 0; i < 100; ++i) {
    ++counts[PlaceAndHold(32768, 1000000 + i * 10000, 1).prefill->worker.name];
  }
  for (const char* name : {"p1", "p2", "p3", "p4"}) {
    EXPECT_GE(counts[name], 20);
    EXPECT_LE(counts[name], 30);
  }
}

TEST_F(PrefixAwareTest, WhatIsNotReadyIsNeverChosen) {
  AddPrefill("p");
  AddDecode("d");
  for (WorkerHealth health : {WorkerHealth::kLoading, WorkerHealth::kDraining,
                              WorkerHealth::kFailed}) {
    int tail = static_cast<int>(health);
    Add(Info(absl::StrCat("x", tail), true, false), health);
    Add(Info(absl::StrCat("y", tail), false, true), health);
  }
  Store("x2", 100, 20);
  Store("y2", 100, 20);
  for (int i = 0; i < 100; ++i) {
    auto placement = Place(400, 100);
    EXPECT_EQ(PrefillOf(placement), "p");
    EXPECT_EQ(placement->decode.worker.name, "d");
  }
  Report("d", {}, WorkerHealth::kDraining);
  EXPECT_EQ(ErrorInfoOf(Place(400).status()).reason, ErrorReason::kNoWorkers);
}

TEST_F(PrefixAwareTest, SuspectsAreTheLastResort) {
  AddDecode("a");
  clock_.Advance(absl::Seconds(1));
  AddDecode("b");
  clock_.Advance(absl::Milliseconds(600));
  timers_.RunDue(clock_.Now());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Place(9)->decode.worker.name, "b");
  // Telemetry is gone altogether: by our own counts.
  clock_.Advance(absl::Seconds(2));
  timers_.RunDue(clock_.Now());
  EXPECT_NE(PlaceAndHold(9, 100, 9).decode.worker.name,
            PlaceAndHold(9, 100, 9).decode.worker.name);
}

TEST_F(PrefixAwareTest, AvoidedWorkersAreLeftOut) {
  AddPrefill("p1");
  AddPrefill("p2");
  AddDecode("d1");
  AddDecode("d2");
  avoid_ = {"p1", "d2"};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(PrefillOf(Place(400)), "p2");
    EXPECT_EQ(Place(400)->decode.worker.name, "d1");
  }
  avoid_ = {"p1", "p2"};
  EXPECT_EQ(PrefillOf(Place(400)), "(decode)");
  avoid_ = {"d1", "d2"};
  EXPECT_EQ(ErrorInfoOf(Place(400).status()).reason, ErrorReason::kNoWorkers);
}

TEST_F(PrefixAwareTest, OnlyCompatibleWorkersArePaired) {
  AddDecode("d");
  std::vector<WorkerInfo> others(3, Info("other", true, false));
  others[0].layout = LayoutId(2);
  others[1].numerics = NumericsId(2);
  others[2].transports = {TransportKind::kShm, TransportKind::kInproc};
  for (size_t i = 0; i < others.size(); ++i) {
    others[i].key.name = absl::StrCat("other", i);
    Add(others[i]);
    EXPECT_EQ(PrefillOf(Place(400)), "(decode)");
  }
  AddPrefill("same");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(PrefillOf(Place(400)), "same");
}

TEST_F(PrefixAwareTest, TheOneWithRoomGetsAllUntilNoneHas) {
  std::vector<std::string> names = {"d1", "d2", "d3", "d4"};
  for (const std::string& name : names) {
    WorkerInfo info = Info(name, false, true);
    info.max_sequences = 5;
    Add(info);
  }
  WorkerLoad full;
  full.active_requests = 5;
  full.queued_requests = 5;
  for (int i = 0; i < 3; ++i) Report(names[i], full);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(PlaceAndHold(9, 100, 9).decode.worker.name, "d4");
  }
  auto rejected = Place(9);
  EXPECT_EQ(ErrorInfoOf(rejected.status()).reason, ErrorReason::kQueueFull);
  EXPECT_EQ(ErrorInfoOf(rejected.status()).retry_after, absl::Seconds(1));
  held_.clear();
  EXPECT_EQ(Place(9)->decode.worker.name, "d4");
}

TEST_F(PrefixAwareTest, FullPrefillWorkersAreWaitedFor) {
  WorkerInfo info = Info("p", true, false);
  info.max_sequences = 1;
  Add(info);
  AddDecode("d");
  WorkerLoad full;
  full.active_requests = 2;
  Report("p", full);
  EXPECT_EQ(ErrorInfoOf(Place(400).status()).reason, ErrorReason::kQueueFull);
  EXPECT_EQ(PrefillOf(Place(9)), "(decode)");
}

TEST_F(PrefixAwareTest, MemoryThatNeverSufficesIsSaid) {
  WorkerInfo info = Info("small", false, true);
  info.total_blocks = 10;
  Add(info);
  EXPECT_TRUE(Place(100, 1, 60).ok());
  EXPECT_EQ(ErrorInfoOf(Place(100, 1, 61).status()).reason,
            ErrorReason::kKvTooSmall);
  EXPECT_EQ(ErrorInfoOf(Place(100, 1, INT32_MAX).status()).reason,
            ErrorReason::kKvTooSmall);
  info.context_length = 160;
  info.key.incarnation = Incarnation(2);
  ASSERT_TRUE(registry_.Register(info).ok());
  WorkerLoad ready;
  ready.health = WorkerHealth::kReady;
  ASSERT_TRUE(registry_.Report(info.key, ready).ok());
  EXPECT_TRUE(Place(100, 1, 61).ok());  // it stops at its context
  AddDecode("large");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Place(170)->decode.worker.name, "large");
  }
}

TEST_F(PrefixAwareTest, MemoryPressureRepels) {
  AddDecode("a");
  AddDecode("b");
  WorkerLoad load;
  load.total_blocks = 100000;
  load.free_blocks = 5000;
  Report("a", load);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Place(64)->decode.worker.name, "b");
}

// What is reserved is what the cost model says of each leg's own part.
TEST_F(PrefixAwareTest, ReservesWhatEachLegCosts) {
  costs_ = {.prefill_fixed = absl::Seconds(100),
            .prefill_token = absl::Seconds(1),
            .prefill_pair = absl::ZeroDuration(),
            .step_sequence = absl::Seconds(3),
            .step_context_token = absl::ZeroDuration()};
  AddPrefill("p");
  AddDecode("d");
  Store("p", 100, 1);
  auto placement = Place(40, 100, 10);
  EXPECT_EQ(placement->prefill->load, (LoadShare{absl::Seconds(124), 1, 3}));
  EXPECT_EQ(placement->decode.load, (LoadShare{absl::Seconds(30), 1, 4}));
  auto local = Place(10, 500, 1000);  // generates 128 as far as we know
  EXPECT_EQ(local->decode.load,
            (LoadShare{absl::Seconds(110 + 3 * 128), 1, 9}));
}

TEST_F(PrefixAwareTest, EqualDrawsGiveEqualAnswers) {
  for (int i = 0; i < 5; ++i) AddDecode(absl::StrCat("d", i));
  std::vector<std::string> first, second;
  for (auto* out : {&first, &second}) {
    random_ = SeededRandom(42);
    for (int i = 0; i < 50; ++i) {
      out->push_back(Place(64)->decode.worker.name);
    }
  }
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace penstock
