// Peers that die or fall silent, and the time until nothing waits for them.

#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

ScenarioResult DeadPrefillLeavesNoBlocks(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.router.max_attempts = 1;
  options.worker.handoff.lease = absl::Seconds(10);
  Case run(options);
  int caught = 0;
  absl::Duration longest;
  // Each time it dies a little later in the life of a handoff.
  for (int when = 0; when < 40; ++when) {
    run.Submit(90 + when, 8);
    run.RunFor(absl::Microseconds(500) * when);
    const int held = run.HeldBlocks("decode0");
    caught += held > 0;
    run.cluster().Kill("prefill0");
    const absl::Duration died = run.Elapsed();
    run.RunUntil("decode lets go or finishes",
                 [&] { return run.worker("decode0").core().idle(); });
    if (!run.clients().back()->ended->ok()) {
      longest = std::max(longest, run.Elapsed() - died);
    }
    run.cluster().Restart("prefill0");
    run.RunFor(absl::Milliseconds(600));
  }
  run.RunUntilIdle();
  run.AtLeast("deaths that decode held blocks through", caught, 20);
  run.AtMost("blocks of failed ones held for", longest, absl::Seconds(11));
  run.Equal("blocks held at the end", run.HeldBlocks("decode0"), 0);
  const BlockCounts counts = run.Blocks("decode0");
  run.Equal("free or cached", counts.free + counts.cached, counts.total());
  return run.Finish();
}

// A cluster whose prefill takes over 10 s for a step, so that leases matter.
SimClusterOptions SlowSteps(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.blocks = 160;
  options.worker.backend.row_cost = absl::Milliseconds(120);
  options.router.max_attempts = 1;
  return options;
}

ScenarioResult RenewalsHideNoExpiredLease(uint64_t seed) {
  Case run(SlowSteps(seed));
  std::set<RequestId> silent;
  run.cluster().network().filter = [&](const WorkerKey& from, const WorkerKey&,
                                       const HandoffMessage& message) {
    return from.name != "prefill0" || std::holds_alternative<Offer>(message) ||
           !silent.contains(TransferOf(message).request);
  };
  for (int i = 0; i < 20; ++i) {
    SimClient* client = run.Submit(96, 2);
    if (i % 2 == 1) silent.insert(client->request.id);
  }
  run.RunFor(absl::Milliseconds(9900));
  run.Equal("blocks in transfer under the lease",
            run.Blocks("decode0").in_transfer, 20 * 6);
  run.RunFor(absl::Milliseconds(600));
  run.Equal("when it has passed", run.Blocks("decode0").in_transfer, 10 * 6);
  run.RunUntilIdle();
  run.Equal("finished", run.Finished(), 10);
  run.Equal("lost their lease", run.EndedWith(ErrorReason::kTransferFailed),
            10);
  return run.Finish();
}

ScenarioResult ReaperNeedsNoNewWork(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  // Prefill is heard once.
  run.cluster().network().filter = [](const WorkerKey& from, const WorkerKey&,
                                      const HandoffMessage& message) {
    return from.name != "prefill0" || std::holds_alternative<Offer>(message);
  };
  std::vector<LegPair> pairs(3);
  for (int i = 0; i < 3; ++i) {
    GenerateRequest request;
    request.id = RequestId(100 + i);
    request.prompt.assign(90, 100 + i);
    request.stop.max_tokens = 8;
    StartPair(run, request, &pairs[i]);
  }
  run.RunFor(absl::Seconds(1));
  const int64_t rows = run.worker("decode0").backend().rows_computed();
  run.Equal("blocks held by decode", run.HeldBlocks("decode0"), 3 * 6);
  run.RunUntil("decode lets go by itself",
               [&] { return run.HeldBlocks("decode0") == 0; });
  run.AtMost("blocks free after", run.Elapsed(), absl::Milliseconds(10100));
  run.RunUntil("prefill gives up what it keeps",
               [&] { return run.HeldBlocks("prefill0") == 0; });
  run.AtMost("what prefill kept after", run.Elapsed(),
             absl::Milliseconds(20200));
  run.Equal("steps meanwhile",
            run.worker("decode0").backend().rows_computed() - rows, 0);
  int lost = 0;
  for (const LegPair& pair : pairs) {
    lost += pair.EndedWith(ErrorReason::kTransferFailed);
  }
  run.Equal("lost their lease", lost, 3);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> LeaseScenarios() {
  return {
      {"dead-prefill-leaves-no-blocks",
       {2},
       "decode leaks blocks for ever, waiting for a dead prefill's completion",
       "prefill dies at 40 moments of a handoff: decode holds no block of it "
       "11 s later, free + cached = total",
       DeadPrefillLeavesNoBlocks},
      {"renewals-hide-no-expired-lease",
       {6},
       "leases never reaped: renewals reorder what the reaper scans",
       "of 20 leases of which every other is renewed, 10 expire after 10 s and "
       "give 60 blocks back; the renewed 10 finish",
       RenewalsHideNoExpiredLease},
      {"reaper-needs-no-new-work",
       {8},
       "wedged with health OK: clean-up ran only when work was scheduled",
       "with no step and no new request, 18 blocks of silent transfers are "
       "free when the lease of 10 s ends, and what prefill kept 10 s later",
       ReaperNeedsNoNewWork},
  };
}

}  // namespace penstock
