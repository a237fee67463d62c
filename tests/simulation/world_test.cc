// Each fault of the simulated world does what its name says, with values that
// follow from latency, bandwidth and clocks alone.

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/world_fixture.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

// --- clocks -----------------------------------------------------------------

TEST(SimClockTest, DriftsAndJumpsAndNeverGoesBack) {
  ManualClock world;
  SimClock clock(&world, Instant::FromNanos(1'000));
  world.Advance(absl::Seconds(10));
  EXPECT_EQ(clock.Now(), Instant::FromNanos(1'000) + absl::Seconds(10));
  clock.SetRate(1.5);
  world.Advance(absl::Seconds(10));
  EXPECT_EQ(clock.Now(), Instant::FromNanos(1'000) + absl::Seconds(25));
  clock.SetRate(1);
  clock.Jump(absl::Seconds(3));
  EXPECT_EQ(clock.Now(), Instant::FromNanos(1'000) + absl::Seconds(28));
  clock.Jump(-absl::Seconds(2));
  world.Advance(absl::Seconds(1));
  EXPECT_EQ(clock.Now(), Instant::FromNanos(1'000) + absl::Seconds(28));
  world.Advance(absl::Seconds(4));
  EXPECT_EQ(clock.Now(), Instant::FromNanos(1'000) + absl::Seconds(31));
}

TEST(SimClockTest, SaysWhenItWillHaveGotThere) {
  ManualClock world;
  SimClock clock(&world, Instant::FromNanos(5));
  clock.SetRate(0.5);
  const Instant local = Instant::FromNanos(5) + absl::Seconds(2);
  const Instant at = clock.WorldTimeOf(local);
  EXPECT_EQ(at, world.Now() + absl::Seconds(4));
  world.AdvanceTo(at);
  EXPECT_GE(clock.Now(), local);
  EXPECT_EQ(clock.WorldTimeOf(Instant::FromNanos(5)), world.Now());
  EXPECT_EQ(clock.WorldTimeOf(Instant::Infinite()), Instant::Infinite());
}

TEST(SimHostTest, AFrozenProcessHandlesAllInOrderWhenItWakes) {
  ManualClock world;
  Timers queue;
  SimHost host("h", &world, &queue, Instant::FromNanos(77));
  std::vector<std::string> done;
  host.Boot([&] { done.push_back("settled"); });
  host.timers().Schedule(host.clock().Now() + absl::Seconds(1),
                         [&] { done.push_back("timer"); });
  host.Rearm();
  host.Freeze();
  host.Handle([&] { done.push_back("first"); });
  host.Handle([&] { done.push_back("second"); });
  world.Advance(absl::Seconds(2));
  queue.RunDue(world.Now());
  EXPECT_TRUE(done.empty());
  host.Wake();
  EXPECT_THAT(done, ElementsAre("first", "second", "timer", "settled"));
}

TEST(SimHostTest, NothingOfAProcessOutlivesIt) {
  ManualClock world;
  Timers queue;
  SimHost host("h", &world, &queue, Instant::FromNanos(77));
  int heard = 0;
  host.Boot([] {});
  host.Freeze();
  host.Handle([&] { ++heard; });
  host.timers().Schedule(host.clock().Now(), [&] { ++heard; });
  host.Rearm();
  host.Halt();
  EXPECT_FALSE(host.alive());
  host.Boot([] {});
  EXPECT_FALSE(host.frozen());
  world.Advance(absl::Seconds(1));
  queue.RunDue(world.Now());
  EXPECT_EQ(heard, 0);
  EXPECT_EQ(host.life(), 2u);
}

// A timer of a fast clock is early in the world, one of a slow clock late.
TEST(WorldTest, TimersFollowTheirHostsClock) {
  for (double rate : {0.5, 2.0}) {
    SimClusterOptions options;
    options.worker.blocks = 128;
    SimCluster cluster(options);
    cluster.Inject(At(kOnce, FaultKind::kClockDrift, "router", kOnce, rate));
    Wait(cluster, absl::Milliseconds(1));
    SimClient* client = cluster.Submit(10, 1500, absl::Seconds(1));
    ASSERT_NE(client, nullptr) << cluster.refused();
    const Instant begin = cluster.now();
    ASSERT_TRUE(cluster.RunUntil([&] { return client->ended.has_value(); }));
    // The worker's own clock is right; whoever is first ends it.
    const absl::Duration took = cluster.now() - begin;
    EXPECT_GE(took, absl::Seconds(1) / std::max(1.0, rate)) << rate;
    EXPECT_LE(took,
              absl::Seconds(1) / std::max(1.0, rate) + absl::Milliseconds(10))
        << rate;
  }
}

TEST(WorldTest, AJumpMakesDeadlinesDueAtOnce) {
  SimCluster cluster(Options());
  SimClient* client = cluster.Submit(10, 500, absl::Seconds(30));
  cluster.Inject(
      At(absl::Milliseconds(100), FaultKind::kClockJump, "router", kOnce, 31));
  ASSERT_TRUE(cluster.RunUntil([&] { return client->ended.has_value(); }));
  EXPECT_EQ(cluster.now() - cluster.start(), absl::Milliseconds(100));
}

// Each ends when its time is over, whatever became of the process meanwhile.
TEST(WorldTest, FaultsThatOverlapEndEachForItself) {
  SimCluster cluster(Options());
  cluster.Inject(At(absl::ZeroDuration(), FaultKind::kClockDrift, "prefill0",
                    absl::Seconds(3), 2));
  cluster.Inject(At(absl::ZeroDuration(), FaultKind::kClockDrift, "prefill0",
                    absl::Seconds(1), 4));
  cluster.Inject(At(absl::Milliseconds(500), FaultKind::kKill, "prefill0",
                    absl::Milliseconds(100)));
  const Clock& clock = cluster.host("prefill0").clock();
  for (int rate : {4, 2, 1}) {
    Wait(cluster, absl::Milliseconds(100));
    const Instant before = clock.Now();
    Wait(cluster, absl::Milliseconds(300));
    EXPECT_EQ(clock.Now() - before, rate * absl::Milliseconds(300)) << rate;
    Wait(cluster, absl::Milliseconds(1200));
  }
  EXPECT_EQ(cluster.faults_by_kind(),
            (std::map<FaultKind, int64_t>{{FaultKind::kKill, 1},
                                          {FaultKind::kClockDrift, 2}}));
}

TEST(SimModelTest, ADrawDependsOnWhatTheSamplerLooksAt) {
  GenerateRequest request;
  request.prompt = {5, 6, 7};
  request.sampling.seed = 1;
  const std::vector<TokenId> usual = SimModel::Answer(request, 8);
  EXPECT_EQ(usual, SimModel::Generate(request.prompt, 8, 1));
  request.sampling.penalties.presence = 0.5f;
  EXPECT_NE(SimModel::Answer(request, 8), usual);
  request.sampling.penalties = {};
  request.sampling.mirostat.on = true;
  EXPECT_NE(SimModel::Answer(request, 8), usual);
  request.sampling.mirostat.on = false;
  request.sampling.temperature = 0;
  const std::vector<TokenId> greedy = SimModel::Answer(request, 8);
  EXPECT_NE(greedy, usual);
  request.sampling.seed = 2;
  EXPECT_EQ(SimModel::Answer(request, 8, 3), greedy);

  SampleHistory history;
  history.tokens = {5, 6, 7, 9};
  history.prompt_tokens = 3;
  request.sampling.penalties.frequency = 0.5f;
  auto draw = [&] {
    return SimModel::Draw(1, request.sampling, 4, 0, &history).token;
  };
  const TokenId before = draw();
  history.tokens = {7, 6, 5, 9};
  EXPECT_EQ(draw(), before) << "only how often counts";
  history.tokens.push_back(9);
  EXPECT_NE(draw(), before);
  history.tokens.pop_back();
  history.prompt_tokens = 4;
  EXPECT_NE(draw(), before);
}

// --- hosts ------------------------------------------------------------------

TEST(WorldTest, AKilledWorkerIsBackWithAnotherIncarnation) {
  SimCluster cluster(Options());
  const WorkerKey before = cluster.worker("prefill0")->key();
  cluster.Inject(
      At(absl::Seconds(1), FaultKind::kKill, "prefill0", absl::Seconds(2)));
  Wait(cluster, absl::Milliseconds(1002));
  EXPECT_EQ(cluster.worker("prefill0"), nullptr);
  EXPECT_FALSE(Knows(cluster, "prefill0"));
  Wait(cluster, absl::Milliseconds(2010));
  ASSERT_NE(cluster.worker("prefill0"), nullptr);
  EXPECT_NE(cluster.worker("prefill0")->key(), before);
  EXPECT_TRUE(Knows(cluster, "prefill0"));
  EXPECT_EQ(cluster.faults(), 1);
}

TEST(WorldTest, AKilledRouterLosesItsClientsAndFindsItsWorkers) {
  SimCluster cluster(Options());
  SimClient* client = cluster.Submit(100, 500);
  cluster.Inject(
      At(absl::Milliseconds(50), FaultKind::kKill, "router", absl::Seconds(1)));
  Wait(cluster, absl::Milliseconds(60));
  EXPECT_FALSE(cluster.router_alive());
  ASSERT_TRUE(client->ended.has_value());
  EXPECT_EQ(client->ended->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(cluster.Submit(10, 5), nullptr);
  // Workers come back by themselves and have dropped the old router's legs.
  ASSERT_TRUE(cluster.RunUntil(
      [&] {
        return cluster.router_alive() && Knows(cluster, "prefill0") &&
               Knows(cluster, "decode0");
      },
      absl::Seconds(5)));
  Wait(cluster, absl::Milliseconds(10));
  SimClient* next = cluster.Submit(100, 5);
  ASSERT_NE(next, nullptr) << cluster.refused();
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(next->ended->ok()) << *next->ended;
  EXPECT_EQ(cluster.Check(), "");
}

TEST(WorldTest, AShortFreezeOnlyDelaysAndALongOneBreaksStreams) {
  for (int seconds : {2, 5}) {
    SimCluster cluster(Options());
    SimClient* client = cluster.Submit(10, 100);
    cluster.Inject(At(absl::Milliseconds(50), FaultKind::kFreeze, "decode0",
                      absl::Seconds(seconds)));
    Wait(cluster, absl::Milliseconds(60));
    const size_t before = client->tokens.size();
    EXPECT_GT(before, 5u);
    Wait(cluster, absl::Milliseconds(1900));
    EXPECT_EQ(client->tokens.size(), before);
    ASSERT_TRUE(cluster.RunUntilIdle());
    // The router dialled: it gives the leg up 3 s after the freeze.
    if (seconds == 2) {
      EXPECT_TRUE(client->ended->ok()) << *client->ended;
    }
    EXPECT_EQ(cluster.Check(), "");
  }
}

TEST(WorldTest, ASlowHostsStepsTakeLonger) {
  SimCluster cluster(Options());
  cluster.Inject(At(kOnce, FaultKind::kSlow, "decode0", kOnce, 10));
  Wait(cluster, absl::Milliseconds(1));
  SimClient* client = cluster.Submit(10, 11);
  const Instant begin = cluster.now();
  ASSERT_TRUE(cluster.RunUntil([&] { return client->ended.has_value(); }));
  // A step over ten rows and ten over one, 2 ms and 20 us a row each; the leg
  // and its last frame cross a latency of 1 ms.
  EXPECT_EQ(cluster.now() - begin,
            10 * (absl::Microseconds(2200) + 10 * absl::Microseconds(2020)) +
                absl::Milliseconds(2));
}

TEST(WorldTest, AFailedStepIsTheWorkersFault) {
  SimCluster cluster(Options());
  cluster.Inject(At(kOnce, FaultKind::kStepFails, "decode0"));
  SimClient* client = cluster.Submit(10, 5);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.faults(), 1);
  EXPECT_EQ(cluster.Check(), "");
  EXPECT_TRUE(client->ended.has_value());
}

TEST(WorldTest, TakenBlocksAreNotThere) {
  SimCluster cluster(Options());
  cluster.Inject(At(absl::Milliseconds(10), FaultKind::kKvFull, "decode0",
                    absl::Seconds(1), 40));
  Wait(cluster, absl::Milliseconds(20));
  EXPECT_EQ(cluster.worker("decode0")->core().pool().free(), 64 - 40);
  EXPECT_EQ(cluster.Check(), "");
  Wait(cluster, absl::Seconds(1));
  EXPECT_EQ(cluster.worker("decode0")->core().pool().free(), 64);
}

TEST(WorldTest, WithoutLoadReportsAWorkerIsSuspect) {
  SimCluster cluster(Options());
  cluster.Inject(At(absl::Seconds(1), FaultKind::kNoHeartbeats, "decode0",
                    absl::Seconds(3)));
  Wait(cluster, absl::Milliseconds(2900));
  EXPECT_TRUE(Suspects(cluster, "decode0"));
  EXPECT_FALSE(Suspects(cluster, "prefill0"));
  EXPECT_TRUE(Knows(cluster, "decode0"));
  Wait(cluster, absl::Milliseconds(1700));
  EXPECT_FALSE(Suspects(cluster, "decode0"));
}

TEST(WorldTest, ADrainedWorkerIsNotChosen) {
  SimClusterOptions options;
  options.decode_workers = 2;
  SimCluster cluster(options);
  cluster.Inject(At(kOnce, FaultKind::kDrain, "decode0"));
  Wait(cluster, absl::Milliseconds(5));
  for (int i = 0; i < 8; ++i) {
    SimClient* client = cluster.Submit(10, 3);
    ASSERT_TRUE(cluster.RunUntilIdle());
    EXPECT_EQ(client->placement.decode, "decode1");
  }
}

// --- the run ----------------------------------------------------------------

TEST(WorldTest, TheLogsHashCountsLinesThatAreNotKept) {
  auto run = [](size_t lines) {
    SimClusterOptions options;
    options.log_lines = lines;
    SimCluster cluster(options);
    cluster.Submit(100, 20);
    EXPECT_TRUE(cluster.RunUntilIdle());
    EXPECT_LE(cluster.log().size(), lines);
    return cluster.LogHash();
  };
  EXPECT_EQ(run(3), run(100'000));
}

TEST(WorldTest, EveryEventIsSeenAndCounted) {
  SimCluster cluster(Options());
  const int64_t before = cluster.events();
  int64_t seen = 0;
  cluster.after_event = [&] { ++seen; };
  cluster.Submit(100, 20);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_GT(seen, 50);
  EXPECT_EQ(cluster.events() - before, seen);
}

}  // namespace
}  // namespace penstock
