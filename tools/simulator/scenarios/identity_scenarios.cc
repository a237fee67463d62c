// Who is who: workers that return, attempts that are over, layouts that differ.

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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
  // An idle prefill worker that would take every prompt, as the router sees
  // it; nobody is at its address.
  int placed[2] = {};
  for (bool equal : {true, false}) {
    Case run(CaseOptions(seed, 1, 1));
    KvLayout layout = SimModel::Layout();
    if (!equal) ++layout.head_dim;
    WorkerInfo stranger = run.worker("prefill0").core().Info();
    stranger.key = {"stranger", Incarnation(99)};
    stranger.control_address = "stranger";
    stranger.layout = layout.id();
    run.True("it may register",
             run.cluster().router().OnRegister(stranger).ok());
    const WorkerLoad load = run.worker("prefill0").core().Load();
    run.True("it is ready",
             run.cluster().router().OnLoad(stranger.key, load).ok());
    for (int i = 0; i < 20; ++i) run.Submit(100, 4);
    run.RunUntilIdle();
    for (const PlacementFacts& facts : run.probe().placements) {
      placed[equal] += facts.prefill == "stranger";
    }
    run.Equal("layouts that differ have ids that differ", ids.size(),
              changes.size() + 1);
    run.AtLeast("placed on a stranger of the same layout", placed[true], 1);
    run.Equal("finished", run.Finished(), 20);
    if (!equal) run.Equal("placed on one of another layout", placed[false], 0);
    if (ScenarioResult result = run.Finish();
        !equal || !result.failure.empty()) {
      return result;
    }
  }
  return {};
}

// Whatever would end or hasten a transfer, if `from` were a party to it.
void SayAll(const WorkerKey& from, TransferId transfer, WorkerCore& core) {
  PeerListener* listener = core.peer_listener();
  listener->OnPeerMessage(from,
                          Abort{transfer, absl::StatusCode::kCancelled, ""});
  listener->OnPeerMessage(from, Commit{transfer, {}});
  listener->OnPeerMessage(from, ChunkDone{transfer, 0, 0, {1}, {}});
  listener->OnPeerLost(from, absl::UnavailableError("long ago"));
}

ScenarioResult RestartAtTheSameAddress(uint64_t seed) {
  Case run(CaseOptions(seed, 2, 2));
  std::vector<WorkerKey> old_lives;
  for (const char* name : {"prefill0", "decode0", "prefill1", "decode1"}) {
    for (int i = 0; i < 8; ++i) run.Submit(100, 30);
    run.RunFor(absl::Milliseconds(8));
    old_lives.push_back(run.worker(name).key());
    run.cluster().Kill(name);
    run.RunFor(absl::Milliseconds(20));
    run.cluster().Restart(name);
    run.RunUntilIdle();
  }
  const int finished_before = run.Finished();
  const int retries_before = run.probe().retries;
  int in_transfer = 0;
  for (int i = 0; i < 8; ++i) {
    SimClient* client = run.Submit(100, 30);
    run.RunUntil("decode has granted", [&] {
      return run.Blocks("decode0").in_transfer > 0 ||
             run.Blocks("decode1").in_transfer > 0;
    });
    ++in_transfer;
    // What an earlier life still says is nothing to the transfers of this one.
    for (const char* name : {"decode0", "decode1"}) {
      run.On(name, [&](WorkerCore& core) {
        for (const WorkerKey& old : old_lives) {
          SayAll(old, {client->request.id, AttemptId(1)}, core);
        }
      });
    }
    run.RunUntilIdle();
  }
  run.Equal("transfers after every worker had restarted", in_transfer, 8);
  run.Equal("of them finished", run.Finished() - finished_before, 8);
  run.Equal("of them by a second attempt", run.probe().retries - retries_before,
            0);
  return run.Finish();
}

// The prefill leg of a request's first attempt, by the log's line
// "TIME leg 17 prefill prefill0 request 3 attempt 1"; 0: there is none.
LegId FirstPrefillLeg(const SimCluster& cluster, RequestId request) {
  LegId leg = 0;
  const std::string id = absl::StrCat(request.value());
  for (const std::string& line : cluster.log()) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() == 9 && words[1] == "leg" && words[3] == "prefill" &&
        words[6] == id && words[8] == "1") {
      CHECK(absl::SimpleAtoi(words[2], &leg)) << line;
    }
  }
  return leg;
}

ScenarioResult ARetryIsANewAttempt(uint64_t seed) {
  Case run(CaseOptions(seed, 2, 1));
  int injected = 0, absorbed = 0, on_the_second = 0;
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
    const LegId leg = FirstPrefillLeg(run.cluster(), client->request.id);
    const int64_t heard = client->heard;
    TokenFrame frame;
    frame.attempt = AttemptId(1);
    frame.tokens.push_back({999, "<999>", {}, 0});
    frame.finish = FinishReason::kLength;
    frame.usage.prompt_tokens = 200;
    run.cluster().router().OnLegFrame(leg, frame);
    run.cluster().router().OnLegFinished(leg, absl::OkStatus());
    injected += leg != 0;
    absorbed += leg != 0 && client->heard == heard && !client->ended;
    run.RunUntilIdle();
    on_the_second += client->attempt == AttemptId(2);
    run.cluster().Restart(prefill);
  }
  run.Equal("late successes of first attempts", injected, 10);
  run.Equal("of them without effect", absorbed, 10);
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
       "another layout gets 0 of 20 handoffs, where one of the same layout "
       "gets some",
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
