// What the client gets: tokens, counts and text, however it was served.

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

ScenarioResult CountedOnce(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  int64_t got = 0, reported = 0, asked = 0;
  for (int prompt : {10, 100}) {  // decode alone, and a handoff
    for (int max_tokens : {1, 2, 17}) {
      for (int n : {1, 3}) {
        SimClient* client =
            run.Submit(prompt, max_tokens,
                       [&](GenerateRequest& request) { request.n = n; });
        run.RunUntilIdle();
        for (const auto& [sample, tokens] : client->samples) {
          got += tokens.size();
        }
        reported += client->last->usage.completion_tokens;
        asked += max_tokens * n;
      }
    }
  }
  run.Equal("tokens asked for", asked, 2 * (1 + 2 + 17) * 4);
  run.Equal("delivered", got, asked);
  run.Equal("reported as usage", reported, asked);
  return run.Finish();
}

ScenarioResult DrainThenExit(uint64_t seed) {
  Case run(CaseOptions(seed, 2, 2));
  for (int i = 0; i < 120; ++i) {
    run.cluster().After(absl::Milliseconds(10) * i,
                        [&] { run.Submit(100, 30); });
  }
  for (const char* name : {"decode1", "prefill1"}) {
    run.RunFor(absl::Milliseconds(300));
    run.worker(name).core().BeginDrain();
    run.RunUntil("it has handed on what it had", [&] {
      const WorkerCore& core = run.worker(name).core();
      return core.idle() && !core.keeps();
    });
    run.RunFor(absl::Milliseconds(5));
    run.cluster().Kill(name);
  }
  run.RunFor(absl::Seconds(1));
  run.RunUntilIdle();
  run.Equal("submitted", run.clients().size(), 120);
  run.Equal("finished", run.Finished(), 120);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> AnswerScenarios() {
  return {
      {"counted-once",
       {26},
       "max_tokens=1 gives 2; prefill's token is not counted; n>1 leaks",
       "1, 2 or 17 tokens of 1 or 3 answers, handed off or not: 160 asked for, "
       "160 delivered, 160 in usage",
       CountedOnce},
      {"drain-then-exit",
       {27},
       "errors on scale-down: workers exit before they drained",
       "a decode and a prefill worker drain and exit under load: 120 of 120 "
       "finish",
       DrainThenExit},
  };
}

}  // namespace penstock
