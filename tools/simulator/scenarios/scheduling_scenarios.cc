// Requests that compete for memory and time.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

size_t TokensOf(const SimClient& client) {
  size_t tokens = 0;
  for (const auto& [sample, made] : client.samples) tokens += made.size();
  return tokens;
}

// The longest time in which no client got a token although one waited, and in
// which the oldest that had not ended got none.
class Pauses {
 public:
  explicit Pauses(Case* run) : run_(run) {
    run->Watch([this] { Look(); });
  }
  absl::Duration longest() const { return all_.longest; }
  absl::Duration longest_of_oldest() const { return oldest_.longest; }

 private:
  struct Pause {
    void Look(size_t now, absl::Duration time) {
      if (now != value) since = time;
      value = now;
      longest = std::max(longest, time - since);
    }
    size_t value = 0;
    absl::Duration since, longest;
  };

  void Look() {
    size_t tokens = 0, of_oldest = 0, ended = 0;
    bool waiting = false;
    for (const SimClient* client : run_->clients()) {
      tokens += TokensOf(*client);
      ended += client->ended.has_value();
      if (!client->ended && !waiting) of_oldest = TokensOf(*client);
      waiting |= !client->ended;
    }
    if (!waiting) return;
    all_.Look(tokens, run_->Elapsed());
    // Another may be the oldest when one has ended.
    oldest_.Look(of_oldest + (ended << 32), run_->Elapsed());
  }

  Case* run_;
  Pause all_, oldest_;
};

ScenarioResult RanksFailTogether(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.backend.ranks = 4;
  options.worker.backend.rank_spread = 0.3;
  Case run(options);
  for (const auto& [host, at] :
       {std::pair{"prefill0", absl::Milliseconds(8)},
        std::pair{"decode0", absl::Milliseconds(90)}}) {
    Fault fails;
    fails.kind = FaultKind::kStepFails;
    fails.at = at;
    fails.host = host;
    run.cluster().Inject(fails);
  }
  for (int i = 0; i < 20; ++i) {
    run.Submit(100, 20);
    run.RunFor(absl::Milliseconds(10));
  }
  run.RunUntilIdle();
  const int failed = run.EndedWith(ErrorReason::kInternal);
  run.AtLeast("failed by name, with the step that they were in", failed, 2);
  run.AtMost("failed by name", failed, 10);
  run.Equal("finished or failed", run.Finished() + failed, 20);
  // The next steps run on all ranks.
  const int before = run.Finished();
  for (int i = 0; i < 10; ++i) run.Submit(100, 20);
  run.RunUntilIdle();
  run.Equal("finished afterwards", run.Finished() - before, 10);
  return run.Finish();
}

ScenarioResult HoldersRunBeforeWaiters(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 1);
  options.worker.blocks = 20;
  Case run(options);
  Pauses pauses(&run);
  for (int i = 0; i < 24; ++i) {
    run.Submit(90 + i % 3 * 40, 30,
               [&](GenerateRequest& request) { request.n = 1 + i % 2; });
  }
  run.RunUntilIdle();
  run.Equal("finished", run.Finished(), 24);
  run.AtMost("longest time without a token", pauses.longest(),
             absl::Milliseconds(100));
  return run.Finish();
}

// Each worker, with room for one prompt and a half, is the prefill worker of a
// request and the decode worker of another; the last hands to the first.
ScenarioResult CirclesOfCreditsMoveOn(uint64_t seed) {
  constexpr int kWorkers = 5;
  SimClusterOptions options = CaseOptions(seed, 0, 0);
  for (int i = 0; i < kWorkers; ++i) {
    SimWorkerOptions worker = options.worker;
    worker.key.name = absl::StrCat("worker", i);
    worker.roles = {true, true};
    worker.blocks = 10;
    options.workers.push_back(worker);
  }
  Case run(options);
  auto start = [&](int i, uint64_t attempt, const std::vector<TokenId>& has) {
    GenerateRequest request;
    // Neither up nor down all around.
    request.id = RequestId(100 + (i * 2 + seed) % kWorkers);
    request.prompt.assign(96, 100 + i);
    request.stop.max_tokens = 8;
    return run.StartPair(request, attempt, has,
                         {absl::StrCat("worker", i),
                          absl::StrCat("worker", (i + 1) % kWorkers)});
  };
  std::vector<LegPair*> pairs;
  for (int i = 0; i < kWorkers; ++i) pairs.push_back(start(i, 1, {}));
  run.RunUntil("credits are taken back, and those of them end", [&] {
    return std::all_of(pairs.begin(), pairs.end(),
                       [](const LegPair* pair) { return pair->ended(); });
  });
  int taken = 0;
  for (int i = 0; i < kWorkers; ++i) {
    if (!pairs[i]->EndedWith(ErrorReason::kQueueFull)) continue;
    ++taken;
    run.True("not the earliest's", (i * 2 + seed) % kWorkers != 0);
    pairs[i] = start(i, 2, pairs[i]->prefill.ids);
    run.RunUntil("the next attempt ends", [&] { return pairs[i]->ended(); });
  }
  run.AtLeast("credits taken back", taken, 1);
  run.AtMost("credits taken back", taken, kWorkers - 1);
  run.Equal("finished",
            std::count_if(
                pairs.begin(), pairs.end(),
                [](const LegPair* pair) { return pair->decode.ended->ok(); }),
            kWorkers);
  run.AtMost("time that it took", run.Elapsed(), absl::Seconds(3));
  return run.Finish();
}

ScenarioResult CreditsLeaveRoomToGrow(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 1);
  options.worker.blocks = 21;  // five such prompts, and one block
  Case run(options);
  for (int i = 0; i < 10; ++i) run.Submit(64, 15);
  run.RunUntilIdle();
  run.Equal("finished", run.Finished(), 10);
  // 14 tokens of each are fed back; a preempted one computes its prompt again.
  run.Equal("rows that decode computed again",
            run.worker("decode0").backend().rows_computed() - 10 * 14, 0);
  return run.Finish();
}

ScenarioResult PreemptionMakesProgress(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 0, 1);
  options.worker.blocks = 14;
  Case run(options);
  Pauses pauses(&run);
  const int64_t needed = 12 * (20 + 59);
  for (int i = 0; i < 12; ++i) run.Submit(20, 60);
  run.RunUntilIdle();
  run.Equal("finished", run.Finished(), 12);
  const int64_t again =
      run.worker("decode0").backend().rows_computed() - needed;
  run.AtLeast("rows computed again", again, 20);
  run.AtMost("rows computed again", again, needed);
  run.AtMost("longest time without a token", pauses.longest(),
             absl::Milliseconds(20));
  run.AtMost("without one for the oldest", pauses.longest_of_oldest(),
             absl::Milliseconds(20));
  return run.Finish();
}

ScenarioResult ShortBehindCancelledLong(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.blocks = 4096;
  Case run(options);
  std::vector<SimClient*> long_ones;
  for (int i = 0; i < 20; ++i) long_ones.push_back(run.Submit(3000, 100));
  run.RunFor(absl::Milliseconds(100));
  for (SimClient* client : long_ones) run.cluster().Cancel(client);
  SimClient* client = run.Submit(100, 4);
  const absl::Duration submitted = run.Elapsed();
  run.RunUntil("its first token", [&] { return !client->tokens.empty(); });
  // Messages, the chunk under way (256 rows: 7.1 ms), its own (100: 4 ms).
  run.AtMost("first token of the short one after", run.Elapsed() - submitted,
             absl::Milliseconds(6 + 8 + 4));
  run.RunUntilIdle();
  run.Equal("cancelled", run.EndedWith(ErrorReason::kCancelled), 20);
  run.AtMost("prompt tokens computed of 60000",
             run.worker("prefill0").backend().rows_computed() - 100, 256 * 18);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> SchedulingScenarios() {
  return {
      {"ranks-fail-together",
       {14},
       "tensor-parallel ranks hang: values of one rank gate a collective",
       "ranks are simulated (a step lasts as long as its slowest of 4; one "
       "that fails fails it on all): two failed steps fail the requests in "
       "them by name, and 10 of 10 finish afterwards",
       RanksFailTogether},
      {"holders-run-before-waiters",
       {15},
       "running 0, waiting N, for ever: loads that cannot run hold all blocks",
       "24 of 24 finish in 20 blocks, and no 100 ms pass without a token",
       HoldersRunBeforeWaiters},
      {"circles-of-credits-move-on",
       {15},
       "workers wait for each other for ever: each holds blocks for the "
       "other's "
       "prompt",
       "5 workers in a circle have done all within 3 s: at least 1 credit was "
       "taken back, never that of the earliest request",
       CirclesOfCreditsMoveOn},
      {"credits-leave-room-to-grow",
       {16},
       "a node freezes under load: credits left no room for what grows",
       "10 prompts of 4 blocks each in 21 blocks: decode is never made to "
       "compute one again",
       CreditsLeaveRoomToGrow},
      {"preemption-makes-progress",
       {17},
       "preempting and resuming at 0 tokens/s",
       "12 of 12 finish in memory for a few; no more rows are computed again "
       "than were needed once, and no 20 ms pass without a token for the "
       "oldest",
       PreemptionMakesProgress},
      {"short-behind-cancelled-long",
       {21},
       "a short request waits tens of seconds behind cancelled long ones",
       "the first token of a request behind 20 cancelled prompts of 3000 "
       "tokens comes within 18 ms: the chunk under way and its own",
       ShortBehindCancelledLong},
  };
}

}  // namespace penstock
