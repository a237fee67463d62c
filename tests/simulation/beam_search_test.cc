// Beam searches through router, prefill and decode cores, page by page: what
// they find is what a search over the simulated model finds.

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tools/simulator/answer_truth.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

void ExpectFound(const SimClient& client) {
  ASSERT_TRUE(client.ended->ok()) << *client.ended;
  EXPECT_EQ(client.violation, "");
  const std::vector<TrueAnswer> expected = TrueBeams(client.request);
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
  const absl::Status status =
      client == nullptr ? cluster.refused() : *client->ended;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(cluster.Check(), "");
}

}  // namespace
}  // namespace penstock
