// Prefix caches, and what the router believes of them.

#include <algorithm>
#include <set>

#include "common/env/random.h"
#include "tools/simulator/scenarios/case.h"
#include "tools/simulator/scenarios/groups.h"

namespace penstock {
namespace {

// Long enough for the index to know what workers cached.
constexpr absl::Duration kHeartbeats = absl::Milliseconds(1100);

ScenarioResult HitRateDoesNotDecay(uint64_t seed) {
  Case run(CaseOptions(seed, 1, 1));
  SeededRandom random(seed);
  const std::vector<TokenId> prompt = [&] {
    return run.Submit(100, 4)->request.prompt;
  }();
  run.RunUntilIdle();
  const auto same = [&](GenerateRequest& request) { request.prompt = prompt; };
  int first = 0, worst = 100;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 3; ++i) {
      SimClient* client = run.Submit(1, 12, same);
      run.cluster().After(absl::Milliseconds(random.Below(60)),
                          [&, client] { run.cluster().Cancel(client); });
    }
    run.RunUntilIdle();
    run.RunFor(kHeartbeats);
    SimClient* client = run.Submit(1, 4, same);
    run.RunUntilIdle();
    const int cached = client->last->usage.cached_tokens;
    if (round == 0) first = cached;
    worst = std::min(worst, cached);
  }
  run.Equal("cached tokens of 100 after one round", first, 96);
  run.Equal("at worst of 100 rounds", worst, 96);
  for (const char* name : {"prefill0", "decode0"}) {
    run.Equal("blocks held at the end", run.HeldBlocks(name), 0);
  }
  return run.Finish();
}

ScenarioResult PredictedHitsAreUsed(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 2);
  options.worker.blocks = 512;
  Case run(options);
  SeededRandom random(seed);
  int64_t predicted = 0, used = 0;
  int diverged = 0;
  for (int i = 0; i < 60; ++i) {
    // Conversations that grow: each prompt begins as one before it did.
    const SimClient* earlier =
        i < 4 ? nullptr : run.clients()[random.Below(run.clients().size())];
    SimClient* client = run.Submit(50, 12, [&](GenerateRequest& request) {
      if (earlier == nullptr) return;
      std::vector<TokenId> prompt = earlier->request.prompt;
      prompt.insert(prompt.end(), earlier->tokens.begin(),
                    earlier->tokens.end());
      prompt.insert(prompt.end(), request.prompt.begin(), request.prompt.end());
      prompt.resize(std::min<size_t>(prompt.size(), 1000));
      request.prompt = prompt;
    });
    run.RunUntilIdle();
    const int hit = run.probe().placements.back().hit_tokens;
    const int cached = client->last->usage.cached_tokens;
    predicted += hit;
    used += cached;
    diverged += hit != cached;
    run.RunFor(kHeartbeats);
  }
  run.AtLeast("predicted", predicted, 60 * 50);
  run.Equal("used", used, predicted);
  run.Equal("requests for which they differ", diverged, 0);
  return run.Finish();
}

ScenarioResult IndexIsBoundedAndKeyed(uint64_t seed) {
  SimClusterOptions options = CaseOptions(seed, 2, 2);
  Case run(options);
  const std::vector<std::string> names = {"decode0", "decode1", "prefill0",
                                          "prefill1"};
  const auto& index = run.cluster().router().workers().prefixes();
  size_t most = 0;
  run.Watch([&] { most = std::max(most, index.memberships()); });
  for (int i = 0; i < 300; ++i) {
    run.Submit(100 + i % 200, 20);
    run.RunFor(absl::Milliseconds(20));
  }
  run.RunUntilIdle();
  run.RunFor(kHeartbeats);
  size_t cached = 0;
  for (const std::string& name : names) cached += run.Blocks(name).cached;
  run.AtMost("blocks indexed at most", most, 4 * 64);
  run.Equal("indexed at the end", index.memberships(), cached);
  // The same tokens of another tenant, or under another salt, are strangers.
  const std::vector<TokenId> prompt = run.clients().back()->request.prompt;
  const std::vector<std::pair<std::string, std::string>> scopes = {
      {"", ""}, {"one", ""}, {"", "one"}, {"two", "one"}, {"one", "two"}};
  int false_hits = 0, true_hits = 0;
  for (int round = 0; round < 2; ++round) {
    for (const auto& [tenant, salt] : scopes) {
      SimClient* client = run.Submit(1, 2, [&](GenerateRequest& request) {
        request.prompt.assign(prompt.begin(), prompt.begin() + 100);
        request.tenant = tenant;
        request.cache_salt = salt;
      });
      run.RunUntilIdle();
      run.RunFor(kHeartbeats);
      const int hits = client->last->usage.cached_tokens;
      (round == 0 && !(tenant + salt).empty() ? false_hits : true_hits) += hits;
    }
  }
  run.Equal("false hits across 5 scopes", false_hits, 0);
  run.AtLeast("true hits", true_hits, 96 * 5);
  return run.Finish();
}

}  // namespace

std::vector<Scenario> CacheScenarios() {
  return {
      {"hit-rate-does-not-decay",
       {19},
       "the hit rate decays to 0, reference counts turn negative",
       "after 300 cancelled requests over one prompt, each probe still finds "
       "96 of its 100 tokens, and no block is held",
       HitRateDoesNotDecay},
      {"predicted-hits-are-used",
       {23},
       "cache-aware routing silently becomes load balancing",
       "router and engines see the same token ids: for 60 turns of growing "
       "conversations, the cached tokens predicted are those used",
       PredictedHitsAreUsed},
      {"index-is-bounded-and-keyed",
       {24},
       "index memory grows; hits across tenants",
       "never more blocks indexed than workers have (256), in the end exactly "
       "those cached; 0 hits across 5 tenants and salts",
       IndexIsBoundedAndKeyed},
  };
}

}  // namespace penstock
