// Requests that go on elsewhere: what has to be computed again.

#include <algorithm>
#include <string>

#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

ScenarioResult DecodeDiesNothingIsComputedAgain(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 2);
  options.worker.engine.prefill_chunk = 32;
  Case run(options);
  int deaths = 0;
  for (int when = 0; when < 20; ++when) {
    SimClient* client = run.Submit(320, 8);
    std::string decode;
    run.RunUntil("decode has granted", [&] {
      for (const char* name : {"decode0", "decode1"}) {
        if (run.Blocks(name).in_transfer > 0) decode = name;
      }
      return !decode.empty();
    });
    run.RunFor(absl::Milliseconds(2) * when);
    if (run.Blocks(decode).in_transfer > 0) {
      ++deaths;
      run.cluster().Kill(decode);
    }
    run.RunUntilIdle();
    run.True("it finished", client->ended->ok());
    run.cluster().Restart(decode);
    run.RunFor(absl::Seconds(1));
  }
  run.AtLeast("deaths before the commit was acknowledged", deaths, 10);
  // What was under way, and a row for the first token if it had been made.
  run.AtMost("rows that prefill computed beyond 20 prompts",
             run.worker("prefill0").backend().rows_computed() - 20 * 320,
             20 * (32 + 1));
  return run.Finish();
}

ScenarioResult PrefillDiesOnlyTheTailIsComputed(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 1);
  options.worker.engine.prefill_chunk = 32;
  Case run(options);
  SimWorker& decode = run.worker("decode0");
  int64_t before_death = 0, afterwards = 0;
  for (int when = 1; when <= 20; ++when) {
    SimClient* client = run.Submit(640, 8);
    run.RunUntil("decode has granted",
                 [&] { return run.Blocks("decode0").in_transfer > 0; });
    const std::string dying = run.probe().placements.back().prefill;
    const std::string other = dying == "prefill0" ? "prefill1" : "prefill0";
    const int64_t of_dying = run.worker(dying).backend().rows_computed();
    const int64_t of_other = run.worker(other).backend().rows_computed();
    run.RunFor(absl::Milliseconds(2) * when);
    before_death += run.worker(dying).backend().rows_computed() - of_dying;
    run.cluster().Kill(dying);
    run.RunUntilIdle();
    run.True("it finished", client->ended->ok());
    afterwards += run.worker(other).backend().rows_computed() - of_other;
    run.cluster().Restart(dying);
    run.RunFor(absl::Seconds(1));
  }
  // Seven tokens of each are fed back, and decode may compute a tail itself.
  const int64_t again = before_death + afterwards +
                        decode.backend().rows_computed() - 20 * (640 + 7);
  run.AtLeast("rows computed before 20 deaths", before_death, 20 * 200);
  run.AtMost("rows computed again, of chunks under way", again, 20 * 3 * 32);
  return run.Finish();
}

ScenarioResult DrainMovesKv(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 0, 2);
  options.worker.blocks = 256;
  Case run(options);
  for (int i = 0; i < 16; ++i) run.Submit(100, 60);
  run.RunFor(absl::Milliseconds(120));
  const int active = run.worker("decode0").core().Load().active_requests;
  const size_t placed = run.probe().placements.size();
  run.On("decode0", [](WorkerCore& core) { core.BeginDrain(); });
  run.RunUntilIdle();
  int by_push = 0;
  for (size_t i = placed; i < run.probe().placements.size(); ++i) {
    by_push += run.probe().placements[i].prefill == "decode0";
  }
  run.AtLeast("running where the drain began", active, 4);
  run.Equal("of them pushed to the other decode worker", by_push, active);
  run.Equal("finished", run.Finished(), 16);
  const int64_t rows = run.worker("decode0").backend().rows_computed() +
                       run.worker("decode1").backend().rows_computed();
  run.Equal("rows computed twice", rows - 16 * (100 + 59), 0);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> ContinuationScenarios() {
  return {
      {"decode-dies-nothing-is-computed-again",
       {10},
       "a prompt is computed again because its decode worker died",
       "prefill keeps the KV of at least 10 handoffs whose decode worker died "
       "before the acknowledgement; of 20 prompts of 320 tokens it computes no "
       "more again than the chunk of 32 under way",
       DecodeDiesNothingIsComputedAgain},
      {"prefill-dies-only-the-tail-is-computed",
       {2},
       "pages that were verified go to waste with the prefill worker",
       "20 prefill workers die with over 200 rows computed each: at most three "
       "chunks of 32 rows are computed again, the rest decode has kept",
       PrefillDiesOnlyTheTailIsComputed},
      {"drain-moves-kv",
       {27},
       "requests are computed again, or lost, when their worker is taken away",
       "every request running on a decode worker that drains is pushed to the "
       "other one with its KV: 16 of 16 finish, and no row is computed twice",
       DrainMovesKv},
  };
}

}  // namespace penstock
