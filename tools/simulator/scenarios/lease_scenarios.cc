// Peers that die or fall silent, and the time until nothing waits for them.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

// Prefill dies each time a little later in the life of a handoff.
ScenarioResult PrefillDies(uint64_t seed, bool remote_access) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.router.max_attempts = 1;
  if (remote_access) options.worker.transports = {RemoteAccess()};
  Case run(options);
  int caught = 0, quarantined = 0;
  absl::Duration longest;
  run.Watch([&] {
    quarantined = std::max(quarantined, run.Blocks("decode0").quarantined);
  });
  for (int when = 0; when < 40; ++when) {
    run.Submit(90 + when, 8);
    run.RunFor(absl::Microseconds(500) * when);
    caught += run.HeldBlocks("decode0") > 0;
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
  if (remote_access) run.AtLeast("quarantined meanwhile", quarantined, 6);
  run.Equal("blocks held at the end", run.HeldBlocks("decode0"), 0);
  const BlockCounts counts = run.Blocks("decode0");
  run.Equal("free or cached", counts.free + counts.cached, counts.total());
  return run.Finish();
}

ScenarioResult DeadPrefillLeavesNoBlocks(uint64_t seed) {
  ScenarioResult checked = PrefillDies(seed, /*remote_access=*/false);
  return checked.failure.empty() ? PrefillDies(seed, /*remote_access=*/true)
                                 : checked;
}

ScenarioResult NothingLandsAfterTheLease(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.blocks = 48;
  options.worker.handoff.post_timeout = absl::Seconds(14);
  Case run(options);
  // Prefill falls silent when its pages are under way, and they land when
  // decode has given their blocks to others.
  run.cluster().network().filter = [](const WorkerKey& from, const WorkerKey&,
                                      const HandoffMessage& message) {
    return from.name != "prefill0" || std::holds_alternative<Offer>(message);
  };
  Fault late;
  late.kind = FaultKind::kLateWrite;
  late.host = "prefill0";
  late.peer = "decode0";
  run.cluster().Inject(late);
  int landed_late = 0;
  run.cluster().network().on_page = [&](TransferId, absl::Span<uint8_t>) {
    ++landed_late;
  };
  std::vector<const LegPair*> pairs;
  for (int i = 0; i < 4; ++i) {
    GenerateRequest request;
    request.id = RequestId(100 + i);
    request.prompt.assign(160, 100 + i);
    request.stop.max_tokens = 8;
    pairs.push_back(run.StartPair(request));
  }
  run.RunFor(absl::Seconds(1));
  run.Equal("blocks held for pages that do not come", run.HeldBlocks("decode0"),
            4 * 11);
  run.RunUntil("the leases end",
               [&] { return run.HeldBlocks("decode0") == 0; });
  run.AtMost("given back after", run.Elapsed(), absl::Milliseconds(10100));
  // Others fill those blocks while the pages arrive at last.
  for (int i = 0; i < 60; ++i) {
    run.Submit(12, 60);
    run.RunFor(absl::Milliseconds(200));
  }
  run.RunUntilIdle();
  int lost = 0;
  for (const LegPair* pair : pairs) {
    lost += pair->EndedWith(ErrorReason::kTransferFailed);
  }
  run.Equal("failed by name", lost, 4);
  run.Equal("finished", run.Finished(), 60);
  run.Equal("pages that came late",
            run.cluster().network().strikes().at(FaultKind::kLateWrite), 8);
  run.Equal("of them landed", landed_late, 0);
  return run.Finish();
}

ScenarioResult ClocksAnHourApart(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  const std::vector<std::pair<std::string, double>> hosts = {
      {"router", 1800}, {"prefill0", 3600}, {"decode0", 7200}};
  for (const auto& [host, seconds] : hosts) {
    Fault jump;
    jump.kind = FaultKind::kClockJump;
    jump.host = host;
    jump.amount = seconds;
    run.cluster().Inject(jump);
  }
  Fault drift;
  drift.kind = FaultKind::kClockDrift;
  drift.host = "decode0";
  drift.amount = 1.05;
  run.cluster().Inject(drift);
  run.RunFor(absl::Seconds(2));
  for (int i = 0; i < 20; ++i) {
    run.Submit(100, 20, [](GenerateRequest& request) {
      request.timeout = absl::Seconds(30);
    });
  }
  run.RunUntilIdle();
  run.Equal("finished", run.Finished(), 20);
  // A lease counts from its receipt, on whatever clock.
  run.cluster().network().filter = [](const WorkerKey& from, const WorkerKey&,
                                      const HandoffMessage& message) {
    return from.name != "prefill0" || std::holds_alternative<Offer>(message);
  };
  GenerateRequest request;
  request.id = RequestId(100);
  request.prompt.assign(90, 7);
  request.stop.max_tokens = 8;
  const LegPair* pair = run.StartPair(request);
  const absl::Duration begun = run.Elapsed();
  run.RunUntil("decode has granted",
               [&] { return run.HeldBlocks("decode0") > 0; });
  run.RunUntil("the lease ends",
               [&] { return run.HeldBlocks("decode0") == 0; });
  const absl::Duration held = run.Elapsed() - begun;
  run.AtMost("a silent lease of 10 s ended after", held,
             absl::Milliseconds(9600));
  run.AtLeast("in milliseconds", absl::ToInt64Milliseconds(held), 9500);
  run.RunUntil("both legs end", [&] { return pair->ended(); });
  run.RunUntilIdle();
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

// Long answers outlive every lease of their handoff.
ScenarioResult ALeaseEndsWithItsCommit(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 1, 1);
  options.worker.handoff.lease = absl::Milliseconds(300);
  options.worker.handoff.renew_every = absl::Milliseconds(100);
  options.worker.backend.step_cost = absl::Milliseconds(20);
  Case run(options);
  for (int i = 0; i < 8; ++i) run.Submit(60, 40);
  absl::Duration longest;
  run.Watch([&] {
    if (run.Finished() == 0) longest = run.Elapsed();
  });
  run.RunUntilIdle();
  run.AtLeast("milliseconds until the first has ended",
              absl::ToInt64Milliseconds(longest), 2 * 300);
  run.Equal("attempts beyond the first", run.probe().retries, 0);
  run.Equal("finished", run.Finished(), 8);
  return run.Finish();
}

ScenarioResult ReaperNeedsNoNewWork(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  // Prefill is heard once.
  run.cluster().network().filter = [](const WorkerKey& from, const WorkerKey&,
                                      const HandoffMessage& message) {
    return from.name != "prefill0" || std::holds_alternative<Offer>(message);
  };
  std::vector<const LegPair*> pairs;
  for (int i = 0; i < 3; ++i) {
    GenerateRequest request;
    request.id = RequestId(100 + i);
    request.prompt.assign(90, 100 + i);
    request.stop.max_tokens = 8;
    pairs.push_back(run.StartPair(request));
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
  for (const LegPair* pair : pairs) {
    lost += pair->EndedWith(ErrorReason::kTransferFailed);
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
       "prefill dies at 40 moments of a handoff, with and without checks at "
       "the "
       "receiver: decode holds no block of it 11 s later, quarantined ones are "
       "reclaimed, free + cached = total",
       DeadPrefillLeavesNoBlocks},
      {"nothing-lands-after-the-lease",
       {4},
       "HTTP 200 computed on freed KV: a late transfer was only logged",
       "4 handoffs whose pages come after their lease fail by name; 0 of the 8 "
       "late pages land in blocks that 60 others use by then",
       NothingLandsAfterTheLease},
      {"clocks-an-hour-apart",
       {5},
       "leases expired on arrival: the clocks of two hosts were compared",
       "with clocks half an hour, one and two hours ahead 20 of 20 finish; a "
       "silent lease of 10 s ends after 9.5 s where the clock runs 5% fast",
       ClocksAnHourApart},
      {"renewals-hide-no-expired-lease",
       {6},
       "leases never reaped: renewals reorder what the reaper scans",
       "of 20 leases of which every other is renewed, 10 expire after 10 s and "
       "give 60 blocks back; the renewed 10 finish",
       RenewalsHideNoExpiredLease},
      {"a-lease-ends-with-its-commit",
       {6},
       "long answers die when the lease of their handoff would have ended",
       "8 of 8 answers that take over twice the lease of 300 ms after their "
       "handoff finish by their first attempt",
       ALeaseEndsWithItsCommit},
      {"reaper-needs-no-new-work",
       {8},
       "wedged with health OK: clean-up ran only when work was scheduled",
       "with no step and no new request, 18 blocks of silent transfers are "
       "free when the lease of 10 s ends, and what prefill kept 10 s later",
       ReaperNeedsNoNewWork},
  };
}

}  // namespace penstock
