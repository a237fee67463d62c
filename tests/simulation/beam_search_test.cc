// Beam searches through router, prefill and decode cores, page by page: what
// they find is what a search over the simulated model finds.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

struct Found {
  double score = 0;
  std::vector<TokenId> tokens;
};

bool Ends(const GenerateRequest& request, TokenId token) {
  const std::vector<TokenId>& stops = request.stop.stop_ids;
  return token == SimModel::kStopToken ||
         std::find(stops.begin(), stops.end(), token) != stops.end();
}

// On token histories alone.
std::vector<Found> NaiveSearch(const GenerateRequest& request) {
  const int width = request.beam.width;
  const double penalty = request.beam.length_penalty;
  std::vector<std::pair<double, std::vector<TokenId>>> live = {{0.0, {}}};
  std::vector<Found> ended;
  auto add = [&](double sum, const std::vector<TokenId>& tokens) {
    ended.push_back(
        {sum / std::pow(static_cast<double>(tokens.size()), penalty), tokens});
    std::stable_sort(
        ended.begin(), ended.end(),
        [](const Found& a, const Found& b) { return a.score > b.score; });
    if (static_cast<int>(ended.size()) > width) ended.resize(width);
  };
  bool settled = false;
  for (int at = 1; at <= request.stop.max_tokens && !settled; ++at) {
    std::vector<std::pair<double, std::vector<TokenId>>> table;
    for (const auto& [sum, tokens] : live) {
      std::vector<TokenId> history = request.prompt;
      history.insert(history.end(), tokens.begin(), tokens.end());
      const auto all = SimModel::Logprobs(SimModel::StateOf(history));
      for (TokenId id = 0; id < SimModel::kVocabulary; ++id) {
        if (at <= request.stop.min_tokens && Ends(request, id)) continue;
        table.emplace_back(sum + all[id], tokens);
        table.back().second.push_back(id);
      }
    }
    std::stable_sort(
        table.begin(), table.end(),
        [](const auto& a, const auto& b) { return a.first > b.first; });
    live.clear();
    for (int rank = 0; static_cast<int>(live.size()) < width; ++rank) {
      const auto& [sum, tokens] = table[rank];
      if (!Ends(request, tokens.back())) {
        live.push_back(table[rank]);
      } else if (rank < width) {
        add(sum, tokens);
      }
    }
    settled = static_cast<int>(ended.size()) == width &&
              ended.back().score >=
                  live[0].first / std::pow(static_cast<double>(at), penalty);
  }
  if (!settled) {
    for (const auto& [sum, tokens] : live) add(sum, tokens);
  }
  ended.resize(std::min<size_t>(ended.size(), request.n));
  return ended;
}

void ExpectFound(const SimClient& client) {
  ASSERT_TRUE(client.ended->ok()) << *client.ended;
  EXPECT_EQ(client.violation, "");
  const std::vector<Found> expected = NaiveSearch(client.request);
  ASSERT_EQ(client.samples.size(), expected.size());
  int tokens = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(client.samples.at(static_cast<int>(i)), expected[i].tokens) << i;
    tokens += static_cast<int>(expected[i].tokens.size());
  }
  EXPECT_EQ(client.last->usage.completion_tokens, tokens);
}

void AskForBeams(GenerateRequest& request, int width) {
  request.n = std::min(width, 3);
  request.beam.width = width;
  request.beam.length_penalty = 0.8f;
  // A tenth of the vocabulary ends an answer.
  for (TokenId id = 1; id < 100; ++id) request.stop.stop_ids.push_back(id);
  request.stop.min_tokens = 2;
}

TEST(SimulatedBeamSearchTest, FindsTheSameLocallyAndAcrossTheHandoff) {
  int early = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (int prompt : {10, 32, 100}) {  // the short one stays on decode
      SimClusterOptions options;
      options.seed = seed;
      SimCluster cluster(options);
      SimClient* client =
          cluster.Submit(prompt, 20, [&](GenerateRequest& request) {
            AskForBeams(request, 1 + static_cast<int>(seed % 5));
          });
      ASSERT_NE(client, nullptr) << cluster.refused();
      ASSERT_TRUE(cluster.RunUntilIdle());
      ExpectFound(*client);
      EXPECT_EQ(client->placement.prefill.empty(), prompt == 10);
      early += client->samples[0].size() < 20;
      EXPECT_EQ(cluster.Check(), "");
    }
  }
  EXPECT_GT(early, 10);
}

// Searches that hold what others wait for: all end, and find what they would
// have found alone.
TEST(SimulatedBeamSearchTest, SearchesThatCrowdEachOtherOutAllEnd) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.worker.blocks = 27;
    SimCluster cluster(options);
    std::vector<SimClient*> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(cluster.Submit(
          40 + 10 * i, 30,
          [&](GenerateRequest& request) { AskForBeams(request, 4); }));
      ASSERT_NE(clients.back(), nullptr) << cluster.refused();
    }
    ASSERT_TRUE(cluster.RunUntilIdle()) << seed;
    for (SimClient* client : clients) ExpectFound(*client);
    EXPECT_EQ(cluster.Check(), "");
  }
}

TEST(SimulatedBeamSearchTest, WhatCanNeverBeThereAtOnceIsRefused) {
  SimClusterOptions options;
  options.worker.blocks = 20;
  SimCluster cluster(options);
  SimClient* client = cluster.Submit(
      100, 60, [](GenerateRequest& request) { request.beam.width = 8; });
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(client->ended->code(), absl::StatusCode::kResourceExhausted)
      << *client->ended;
  EXPECT_EQ(cluster.Check(), "");
}

}  // namespace
}  // namespace penstock
