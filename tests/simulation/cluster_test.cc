// Router core, prefill core and decode core on one thread with a virtual clock:
// the libraries that the binaries link, and nothing of the binaries.

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

TEST(ClusterTest, OneRequestGoesThroughAllThreeCores) {
  SimCluster cluster({});
  SimClient* client = cluster.Submit(100, 20);
  ASSERT_NE(client, nullptr) << cluster.refused();
  ASSERT_TRUE(cluster.RunUntilIdle());
  ASSERT_TRUE(client->ended->ok()) << *client->ended;
  EXPECT_EQ(client->tokens.size(), 20u);
  EXPECT_EQ(client->placement.prefill, "prefill0");
  EXPECT_EQ(client->placement.decode, "decode0");
  EXPECT_EQ(client->last->transfer.blocks_moved, 7u);
  EXPECT_EQ(client->last->transfer.decode_prompt_tokens, 0u);
  EXPECT_EQ(cluster.Check(), "");
}

TEST(ClusterTest, TheSameRunTwiceGivesTheSameLog) {
  auto run = [](uint64_t seed) {
    SimClusterOptions options;
    options.seed = seed;
    SimCluster cluster(options);
    cluster.Submit(100, 20);
    EXPECT_TRUE(cluster.RunUntilIdle());
    EXPECT_GT(cluster.log().size(), 20u);
    return cluster.LogHash();
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST(ClusterTest, ShortPromptsStayOnTheDecodeWorker) {
  SimCluster cluster({});
  SimClient* client = cluster.Submit(10, 5);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(client->placement.prefill, "");
  EXPECT_EQ(client->last->transfer.transport, "local");
  EXPECT_EQ(cluster.Check(), "");
}

TEST(ClusterTest, OneWorkerWithBothRolesMovesNoByte) {
  SimClusterOptions options;
  options.both_roles = true;
  SimCluster cluster(options);
  SimClient* client = cluster.Submit(100, 20);
  ASSERT_TRUE(cluster.RunUntilIdle());
  ASSERT_TRUE(client->ended->ok()) << *client->ended;
  EXPECT_EQ(client->placement.prefill, "both");
  EXPECT_EQ(client->last->transfer.bytes_moved, 0u);
  EXPECT_EQ(client->last->transfer.blocks_shared, 7u);
  EXPECT_EQ(cluster.Check(), "");
}

TEST(ClusterTest, AWarmPromptIsFoundByTheIndex) {
  SimCluster cluster({});
  SimClient* first = cluster.Submit(100, 5);
  ASSERT_TRUE(cluster.RunUntilIdle());
  // The next heartbeat brings the cache events.
  cluster.RunUntil([] { return false; }, absl::Seconds(1));
  GenerateRequest again = first->request;
  SimClient second;
  second.trace = [](const std::string&) {};
  ASSERT_TRUE(cluster.router().Submit(again, &second).ok());
  ASSERT_TRUE(cluster.RunUntil([&] { return second.ended.has_value(); }));
  EXPECT_EQ(second.tokens, first->tokens);
  // 96 of 100 tokens are cached at decode: it prefills the rest by itself.
  EXPECT_EQ(second.placement.prefill, "");
  EXPECT_EQ(second.last->usage.cached_tokens, 96);
  ASSERT_TRUE(cluster.RunUntilIdle());
}

// Steps that take four times as long on one of two machines: what both measure
// reaches the router with their heartbeats.
TEST(ClusterTest, PromptsGoWhereStepsWereMeasuredToBeShort) {
  SimClusterOptions options;
  options.prefill_workers = 2;
  options.worker.blocks = 512;
  options.workers = WorkersOf(options);
  options.workers[0].backend.row_cost = absl::Microseconds(800);
  options.workers[0].backend.step_cost = absl::Milliseconds(8);
  options.workers[1].backend.row_cost = absl::Microseconds(200);
  SimCluster cluster(options);
  std::map<std::string, int> given;
  auto ask = [&](int requests) {
    std::vector<const SimClient*> clients;
    for (int i = 0; i < requests; ++i)
      clients.push_back(cluster.Submit(200, 2));
    EXPECT_TRUE(cluster.RunUntilIdle());
    given.clear();
    for (const SimClient* client : clients) {
      EXPECT_TRUE(client->ended->ok()) << *client->ended;
      ++given[client->placement.prefill];
    }
    cluster.RunUntil([] { return false; }, absl::Seconds(1));
  };
  ask(10);
  EXPECT_NEAR(given["prefill0"], 5, 1);  // all that is known is their queues
  ask(10);
  EXPECT_GE(given["prefill1"], 7);
  EXPECT_GE(given["prefill0"], 1);
  EXPECT_EQ(cluster.Check(), "");
}

int64_t RowsComputed(SimCluster& cluster) {
  int64_t rows = 0;
  for (SimWorker* worker : cluster.Living())
    rows += worker->backend().rows_computed();
  return rows;
}

// At whatever moment one of two routers dies: its client asks the other at
// once, and what the workers have computed of the prompt is not computed again.
TEST(ClusterTest, ADeadRoutersClientsPayForTheirPromptsOnce) {
  constexpr int kPrompt = 200;
  int cut_off = 0;
  for (int when = 1; when < 40; ++when) {
    SimClusterOptions options;
    options.routers = 2;
    options.prefill_workers = 2;
    options.decode_workers = 2;
    SimCluster cluster(options);
    const SimClient* first = cluster.Submit(kPrompt, 20);
    const SimClient* other = nullptr;
    const SimClient* again = nullptr;
    cluster.UseRouter("router1");
    int64_t before = 0;
    cluster.After(absl::Microseconds(700) * when, [&] {
      before = RowsComputed(cluster);
      cluster.Kill("router");
    });
    // The news of it, and of what workers hold, need as long as a message.
    cluster.After(absl::Microseconds(700) * when + absl::Milliseconds(5), [&] {
      if (!first->ended->ok()) {
        again = cluster.Submit(kPrompt, 20, [&](GenerateRequest& request) {
          request.prompt = first->request.prompt;
          request.sampling.seed = first->request.sampling.seed;
        });
      }
      other = cluster.Submit(5, 3);
    });
    ASSERT_TRUE(cluster.RunUntil([&] { return other != nullptr; })) << when;
    ASSERT_TRUE(cluster.RunUntilIdle()) << when;
    EXPECT_EQ(cluster.Check(), "") << when;
    EXPECT_TRUE(other->ended->ok()) << when;
    if (again == nullptr) continue;
    ASSERT_TRUE(again->ended->ok()) << when << " " << *again->ended;
    EXPECT_EQ(again->tokens.size(), 20u);
    if (first->tokens.empty()) continue;
    ++cut_off;
    EXPECT_TRUE(std::equal(first->tokens.begin(), first->tokens.end(),
                           again->tokens.begin()));
    // The blocks of 16 that are full are found, and each token after the first
    // is a row, as are the other request's.
    EXPECT_GE(again->last->usage.cached_tokens, kPrompt / 16 * 16) << when;
    EXPECT_LE(RowsComputed(cluster) - before, 2 * 16 + 20 + 5 + 3 + 20) << when;
  }
  EXPECT_GT(cut_off, 10);
}

TEST(ClusterTest, ADeadPrefillWorkerIsReplacedBeforeTheFirstToken) {
  int replaced = 0;
  for (int when = 0; when < 30; ++when) {
    SimClusterOptions options;
    options.prefill_workers = 2;
    SimCluster cluster(options);
    SimClient* client = cluster.Submit(200, 10);
    std::string first;
    cluster.After(absl::Microseconds(700) * when, [&] {
      if (!client->tokens.empty() || !client->admitted) return;
      first = client->placement.prefill;
      cluster.Kill(first);
    });
    ASSERT_TRUE(cluster.RunUntilIdle()) << when;
    EXPECT_EQ(cluster.Check(), "") << when;
    // A token on its way when the worker died rules a second attempt out.
    EXPECT_TRUE(client->ended->ok() || !client->tokens.empty())
        << when << " " << *client->ended;
    replaced += client->ended->ok() && client->placement.prefill != first;
  }
  EXPECT_GT(replaced, 5);
}

// Random load, cancels, deadlines, deaths and restarts. Whatever happens, each
// request ends once, with true tokens, and nothing leaks.
TEST(ClusterTest, ChaosKeepsEveryPromise) {
  size_t lines = 0;
  std::map<std::string, int> done;  // requests that ended well, by kind
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SimClusterOptions options;
    options.seed = seed;
    options.prefill_workers = 2;
    options.decode_workers = 2;
    options.worker.blocks = 48;
    SimCluster cluster(options);
    SeededRandom chaos(seed * 977);
    std::vector<SimClient*> clients;
    for (int i = 0; i < 40; ++i) {
      cluster.After(absl::Milliseconds(chaos.Below(400)), [&] {
        absl::Duration timeout = chaos.Below(5) == 0
                                     ? absl::Milliseconds(5 + chaos.Below(200))
                                     : absl::InfiniteDuration();
        SimClient* client =
            cluster.Submit(1 + chaos.Below(300), 1 + chaos.Below(40),
                           [&](GenerateRequest& request) {
                             request.timeout = timeout;
                             request.n = 1 + static_cast<int>(chaos.Below(4));
                             switch (chaos.Below(5)) {
                               case 0:
                                 request.best_of = request.n + 1;
                                 break;
                               case 1:
                                 request.beam.width = 4;
                                 break;
                               case 2:
                                 request.prompt_logprobs = 2;
                                 break;
                             }
                           });
        if (client == nullptr) return;
        clients.push_back(client);
        if (chaos.Below(4) > 0) return;
        cluster.After(absl::Milliseconds(chaos.Below(150)),
                      [&cluster, client] { cluster.Cancel(client); });
      });
    }
    for (const char* name : {"prefill0", "decode1"}) {
      cluster.After(absl::Milliseconds(chaos.Below(500)), [&cluster, name] {
        cluster.Kill(name);
        cluster.After(absl::Milliseconds(200),
                      [&cluster, name] { cluster.Restart(name); });
      });
    }
    cluster.RunUntil([] { return false; }, absl::Milliseconds(1200));
    ASSERT_TRUE(cluster.RunUntilIdle()) << "seed " << seed;
    ASSERT_EQ(cluster.Check(), "") << "seed " << seed;
    lines += cluster.log().size();
    for (const SimClient* client : clients) {
      const GenerateRequest& request = client->request;
      if (!client->ended->ok()) continue;
      ++done[request.beam.width > 0         ? "beam"
             : request.best_of > 0          ? "best of"
             : request.prompt_logprobs >= 0 ? "scored"
             : request.n > 1                ? "samples"
                                            : "single"];
    }
  }
  for (const char* kind : {"beam", "best of", "scored", "samples", "single"}) {
    EXPECT_GT(done[kind], 40) << kind;
  }
  EXPECT_GT(lines, 40u * 500);
}

}  // namespace
}  // namespace penstock
