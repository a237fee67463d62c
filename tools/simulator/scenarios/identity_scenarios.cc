// Who is who: workers that return, attempts that are over, layouts that differ.

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/model/kv_layout.h"
#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

ScenarioResult OnlyEqualLayoutsMeet(uint64_t seed) {
  std::set<LayoutId> ids = {SimModel::Layout().id()};
  const std::vector<void (*)(KvLayout&)> changes = {
      [](KvLayout& layout) { ++layout.layers; },
      [](KvLayout& layout) { ++layout.kv_heads; },
      [](KvLayout& layout) { ++layout.head_dim; },
      [](KvLayout& layout) { ++layout.value_dim; },
      [](KvLayout& layout) { layout.type = KvType::kF16; },
      [](KvLayout& layout) { ++layout.arrangement; },
  };
  for (auto* change : changes) {
    KvLayout layout = SimModel::Layout();
    change(layout);
    ids.insert(layout.id());
  }
  Case run(CaseOptions(seed, 1, 1));
  run.Equal("layouts that differ have ids that differ", ids.size(),
            changes.size() + 1);
  // An idle prefill worker of another layout, as the router sees it.
  KvLayout other = SimModel::Layout();
  ++other.head_dim;
  WorkerInfo stranger = run.worker("prefill0").core().Info();
  stranger.key = {"stranger", Incarnation(99)};
  stranger.control_address = "stranger";
  stranger.layout = other.id();
  run.True("it may register", run.cluster().router().OnRegister(stranger).ok());
  WorkerLoad load = run.worker("prefill0").core().Load();
  run.True("it is ready",
           run.cluster().router().OnLoad(stranger.key, load).ok());
  for (int i = 0; i < 20; ++i) run.Submit(100, 4);
  run.RunUntilIdle();
  const auto& placed = run.probe().placements;
  run.Equal("placed on it",
            std::count_if(placed.begin(), placed.end(),
                          [](const PlacementFacts& facts) {
                            return facts.prefill == "stranger";
                          }),
            0);
  run.Equal("finished", run.Finished(), 20);
  return run.Finish();
}

ScenarioResult RestartAtTheSameAddress(uint64_t seed) {
  Case run(CaseOptions(seed, 2, 2));
  int submitted_after = 0;
  for (const char* name : {"prefill0", "decode0", "prefill1", "decode1"}) {
    for (int i = 0; i < 8; ++i) run.Submit(100, 30);
    run.RunFor(absl::Milliseconds(8));
    run.cluster().Kill(name);
    run.RunFor(absl::Milliseconds(20));
    run.cluster().Restart(name);
    run.RunUntilIdle();
  }
  const int finished_before = run.Finished();
  const int retries_before = run.probe().retries;
  const WorkerKey old_life{"prefill0", Incarnation(1)};
  for (int i = 0; i < 8; ++i) {
    SimClient* client = run.Submit(100, 30);
    ++submitted_after;
    run.RunUntil("decode has granted", [&] {
      return run.Blocks("decode0").in_transfer > 0 ||
             run.Blocks("decode1").in_transfer > 0 || client->ended;
    });
    // What an earlier life still says is nothing to the transfers of this one.
    for (const char* name : {"decode0", "decode1"}) {
      const TransferId transfer{client->request.id, AttemptId(1)};
      PeerListener* listener = run.worker(name).core().peer_listener();
      listener->OnPeerMessage(
          old_life, Abort{transfer, absl::StatusCode::kCancelled, ""});
      listener->OnPeerMessage(old_life, Commit{transfer, {}});
      listener->OnPeerMessage(old_life, ChunkDone{transfer, 0, 0, {1}, {}});
      listener->OnPeerLost(old_life, absl::UnavailableError("long ago"));
    }
    run.RunUntilIdle();
  }
  run.Equal("submitted after every worker had restarted", submitted_after, 8);
  run.Equal("of them finished", run.Finished() - finished_before, 8);
  run.Equal("of them by a second attempt", run.probe().retries - retries_before,
            0);
  return run.Finish();
}

// Of those that the log names, "... leg 17 prefill prefill0 attempt 1".
LegId LastPrefillLeg(const SimCluster& cluster) {
  LegId leg = 0;
  for (const std::string& line : cluster.log()) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() >= 7 && words[1] == "leg" && words[3] == "prefill" &&
        words[6] == "1") {
      CHECK(absl::SimpleAtoi(words[2], &leg));
    }
  }
  return leg;
}

ScenarioResult ARetryIsANewAttempt(uint64_t seed) {
  Case run(CaseOptions(seed, 2, 1));
  int injected = 0, on_the_second = 0;
  for (int i = 0; i < 10; ++i) {
    run.RunFor(absl::Seconds(1));
    SimClient* client = run.Submit(200, 8);
    run.RunUntil("prefill computes", [&] {
      return run.Blocks("prefill0").active + run.Blocks("prefill1").active > 0;
    });
    const std::string prefill = run.probe().placements.back().prefill;
    const size_t placed = run.probe().placements.size();
    run.cluster().Kill(prefill);
    run.RunUntil("it is placed again", [&] {
      return run.probe().placements.size() > placed || client->ended;
    });
    // The first attempt's prefill leg says at last that all went well.
    const LegId leg = LastPrefillLeg(run.cluster());
    TokenFrame frame;
    frame.attempt = AttemptId(1);
    frame.tokens.push_back({999, "<999>", {}, 0});
    frame.finish = FinishReason::kLength;
    frame.usage.prompt_tokens = 200;
    run.cluster().router().OnLegFrame(leg, frame);
    run.cluster().router().OnLegFinished(leg, absl::OkStatus());
    ++injected;
    run.RunUntilIdle();
    on_the_second += client->attempt == AttemptId(2);
    run.cluster().Restart(prefill);
  }
  run.Equal("late successes of first attempts", injected, 10);
  run.Equal("finished", run.Finished(), 10);
  run.Equal("by their second attempt", on_the_second, 10);
  for (const char* name : {"prefill0", "prefill1", "decode0"}) {
    const BlockCounts counts = run.Blocks(name);
    run.Equal("blocks held at the end",
              counts.total() - counts.free - counts.cached, 0);
  }
  return run.Finish();
}

ScenarioResult NothingOfTheOldIncarnation(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  const auto& index = run.cluster().router().workers().prefixes();
  SimClient* first = run.Submit(320, 4);
  run.RunUntilIdle();
  run.RunFor(absl::Seconds(1));
  const size_t both = index.memberships();
  run.Equal("blocks indexed of two workers", both, 40);
  for (const char* name : {"decode0", "prefill0"}) {
    run.cluster().Kill(name);
    run.RunFor(absl::Milliseconds(2));
  }
  run.Equal("2 ms after their deaths", index.memberships(), 0);
  run.Equal("workers in the index", index.workers(), 0);
  for (const char* name : {"decode0", "prefill0"}) {
    run.cluster().Restart(name);
  }
  run.RunFor(absl::Seconds(1));
  run.Equal("when they are back", index.memberships(), 0);
  SimClient* again = run.Submit(1, 4, [&](GenerateRequest& request) {
    request.prompt = first->request.prompt;
  });
  run.RunUntilIdle();
  run.Equal("hits predicted", run.probe().placements.back().hit_tokens, 0);
  run.Equal("tokens taken from a cache", again->last->usage.cached_tokens, 0);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> IdentityScenarios() {
  return {
      {"only-equal-layouts-meet",
       {12},
       "a healthy server with wrong answers: the fingerprint left a field out",
       "6 layouts that differ in one field have 6 other ids; a ready worker of "
       "another layout gets 0 of 20 handoffs",
       OnlyEqualLayoutsMeet},
      {"restart-at-the-same-address",
       {13},
       "the fleet fails after one restart: stale peer state",
       "after every worker restarted under its name, 8 of 8 requests finish by "
       "their first attempt, whatever the earlier lives still say",
       RestartAtTheSameAddress},
      {"a-retry-is-a-new-attempt",
       {18},
       "memory grows, and a retracted request hangs on an old success",
       "10 late successes of first attempts change nothing: 10 of 10 finish by "
       "their second attempt, all blocks are given back (KV has one tier: the "
       "pool; what an ended attempt leaves there is kept under a lease)",
       ARetryIsANewAttempt},
      {"nothing-of-the-old-incarnation",
       {32},
       "a worker dies, returns at the same address, and its old blocks hit",
       "the index holds 0 blocks of a dead worker when its death is known, and "
       "predicts 0 hits when it is back",
       NothingOfTheOldIncarnation},
  };
}

}  // namespace penstock
