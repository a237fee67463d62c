// Where requests go, and what an outage costs.

#include <algorithm>
#include <map>

#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

ScenarioResult DeadPrefillLeavesDecodeHealthy(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 1);
  options.worker.blocks = 256;
  Case run(options);
  SimClient* steady = run.Submit(10, 1500);
  run.RunUntil("decoding began", [&] { return !steady->tokens.empty(); });
  int unhealthy = 0;
  absl::Duration since, longest;
  size_t tokens = 0;
  run.Watch([&] {
    unhealthy +=
        run.worker("decode0").core().Load().health != WorkerHealth::kReady;
    if (steady->tokens.size() != tokens || steady->ended) {
      since = run.Elapsed();
    }
    tokens = steady->tokens.size();
    longest = std::max(longest, run.Elapsed() - since);
  });
  since = run.Elapsed();
  // Transfers get stuck when granted, or with pages under way, and their
  // prefill dies.
  const auto& pages = run.cluster().network().pages_in_flight();
  int granted = 0, under_way = 0, stuck = 0;
  for (int round = 0; round < 10; ++round) {
    SimClient* client = run.Submit(120, 8);
    run.RunUntil("a transfer is in its phase", [&] {
      return run.Blocks("decode0").in_transfer > 0 &&
             (round % 2 == 0 || !pages.empty());
    });
    ++(pages.empty() ? granted : under_way);
    const std::string dying = run.probe().placements.back().prefill;
    run.cluster().Kill(dying);
    run.RunFor(absl::Microseconds(500));
    stuck += run.Blocks("decode0").in_transfer > 0;
    run.RunUntil("the request ends", [&] { return client->ended.has_value(); });
    run.cluster().Restart(dying);
    run.RunFor(absl::Milliseconds(100));
  }
  run.True("the steady request ran through all of them", !steady->ended);
  run.RunUntilIdle();
  run.Equal("deaths before a page was sent", granted, 5);
  run.Equal("deaths with pages under way", under_way, 5);
  run.Equal("transfers that stayed behind", stuck, 10);
  run.Equal("times that decode was not ready", unhealthy, 0);
  run.True("the steady request finished", steady->ended->ok());
  run.AtMost("its longest time without a token", longest,
             absl::Milliseconds(10));
  return run.Finish();
}

ScenarioResult HotPrefixSpreads(uint64_t seed) {
  constexpr int kRequests = 500;
  SimClusterOptions options = CaseOptions(seed, 8, 8);
  options.worker.blocks = 256;
  options.worker.backend.row_cost = absl::Microseconds(700);  // as predicted
  Case run(options);
  const std::vector<TokenId> hot = run.Submit(256, 2)->request.prompt;
  run.RunUntilIdle();
  run.RunFor(absl::Seconds(1));
  // Far more than its owner can serve, at once and then over time.
  for (int i = 0; i < kRequests; ++i) {
    run.Submit(32, 2, [&](GenerateRequest& request) {
      request.prompt.insert(request.prompt.begin(), hot.begin(), hot.end());
    });
    if (i >= 50) run.RunFor(absl::Microseconds(4500));
  }
  run.RunUntilIdle();
  std::map<std::string, int> prefills, decodes;
  for (const PlacementFacts& placed : run.probe().placements) {
    ++prefills[placed.prefill];
    ++decodes[placed.decode];
  }
  auto busiest = [&](const std::map<std::string, int>& counts) {
    int most = 0;
    for (const auto& [name, count] : counts) {
      if (!name.empty()) most = std::max(most, count);
    }
    return most * 100 / kRequests;
  };
  run.Equal("finished", run.Finished(), kRequests + 1);
  run.AtMost("percent on the busiest of 8 prefill workers", busiest(prefills),
             25);
  run.AtMost("percent on the busiest of 8 decode workers", busiest(decodes),
             35);
  return run.Finish();
}

// Requests on a later attempt that has given nothing yet.
class Retrying {
 public:
  explicit Retrying(Case* run) : run_(run) {}
  int Count() {
    int count = 0;
    for (const SimClient* client : run_->clients()) {
      auto retried = run_->probe().retried.find(client->request.id);
      if (client->ended || retried == run_->probe().retried.end()) continue;
      Seen& seen = seen_[client->request.id];
      if (seen.retries != retried->second) {
        seen = {retried->second, client->tokens.size()};
      }
      count += client->tokens.size() == seen.tokens;
    }
    return count;
  }

 private:
  struct Seen {
    int retries = 0;
    size_t tokens = 0;  // when it was tried again
  };
  Case* run_;
  std::map<RequestId, Seen> seen_;
};

ScenarioResult RetryBudget(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 2);
  options.worker.blocks = 1024;
  options.router.max_running = 100;
  options.router.max_queued = 0;
  options.router.retry_floor = 1;
  Case run(options);
  for (int i = 0; i < 100; ++i) run.Submit(200, 40);
  int shed = 0;
  for (int i = 0; i < 10; ++i) {
    shed += run.cluster().Submit(200, 40) == nullptr;
  }
  run.RunFor(absl::Milliseconds(3));
  int most = 0;
  Retrying retrying(&run);
  run.Watch([&] { most = std::max(most, retrying.Count()); });
  run.cluster().Kill("prefill0");
  run.RunUntilIdle();
  run.Equal("refused at once", shed, 10);
  run.AtLeast("tried again in all", run.probe().retries, 30);
  run.Equal("at once", most, 20);
  run.Equal("finished", run.Finished(), 100);
  return run.Finish();
}

ScenarioResult DispatchWithoutHeartbeats(uint64_t seed) {
  Case run(CaseOptions(seed, 4, 4));
  for (const char* name : {"prefill0", "prefill1", "prefill2", "prefill3",
                           "decode0", "decode1", "decode2", "decode3"}) {
    Fault fault;
    fault.kind = FaultKind::kNoHeartbeats;
    fault.at = absl::Seconds(1);
    fault.lasts = absl::Seconds(6);
    fault.host = name;
    run.cluster().Inject(fault);
  }
  // From when every worker is suspect.
  run.RunFor(absl::Seconds(4));
  int suspects = 0;
  for (const auto& [name, worker] :
       run.cluster().router().workers().view().workers) {
    suspects += worker.suspect;
  }
  const size_t before = run.probe().placements.size();
  for (int i = 0; i < 80; ++i) {
    run.Submit(100, 20);
    run.RunFor(absl::Milliseconds(10));
  }
  run.RunUntilIdle();
  std::map<std::string, int> decodes;
  for (size_t i = before; i < run.probe().placements.size(); ++i) {
    ++decodes[run.probe().placements[i].decode];
  }
  int most = 0;
  for (const auto& [name, count] : decodes) most = std::max(most, count);
  run.Equal("suspect workers", suspects, 8);
  run.Equal("finished", run.Finished(), 80);
  run.AtMost("on the busiest of 4 decode workers", most, 30);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> RoutingScenarios() {
  return {
      {"dead-prefill-leaves-decode-healthy",
       {20},
       "prefill dies, then the orchestrator kills decode",
       "decode stays ready through 10 deaths of prefill workers, before the "
       "first page and with pages under way, and its own request never waits "
       "10 ms for a token",
       DeadPrefillLeavesDecodeHealthy},
      {"hot-prefix-spreads",
       {22},
       "all traffic goes to one worker: overlap dominates",
       "500 requests over one hot prefix: at most 25% on the busiest of 8 "
       "prefill workers, 35% on the busiest of 8 decode workers",
       HotPrefixSpreads},
      {"retry-budget",
       {30},
       "retries multiply an outage",
       "one of two prefill workers dies under 100 requests: never more than 20 "
       "at once are on another attempt that gave nothing yet, the others wait; "
       "100 of 100 finish; 10 that were shed are not tried at all",
       RetryBudget},
      {"dispatch-without-heartbeats",
       {31},
       "a telemetry outage halts dispatch: stale metrics fail closed",
       "no worker is heard of for 6 s: 80 of 80 requests of that time finish, "
       "at most 30 on one of 4 workers, by the router's own counts",
       DispatchWithoutHeartbeats},
  };
}

}  // namespace penstock
