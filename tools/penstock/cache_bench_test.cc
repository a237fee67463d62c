#include "tools/penstock/cache_bench.h"

#include <algorithm>
#include <map>

#include "common/env/random.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(CacheBenchTest, SharedSystemPromptsAreFoundInFiveHundredEntries) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto result = RunCacheBench({.seed = seed});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->requests, 1000);
    EXPECT_GT(result->hit_rate(), 0.55) << "seed " << seed;
    EXPECT_LE(result->hits, result->most_hits);
    EXPECT_GT(result->evicted, 0);
  }
}

// With room for everything, all but the first use of each prompt is a hit: a
// binomial of 1000 at 0.6, less 5.
TEST(CacheBenchTest, WithRoomForAllOnlyFirstUsesMiss) {
  const auto result = RunCacheBench({.entries = 100000});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->hits, result->most_hits);
  EXPECT_EQ(result->hit_blocks, result->most_hit_blocks);
  EXPECT_EQ(result->hit_blocks, 16 * result->hits);
  EXPECT_EQ(result->evicted, 0);
  EXPECT_NEAR(result->hits + 5, 600, 62);  // four standard deviations
}

TEST(CacheBenchTest, NothingSharedIsNeverFound) {
  const auto result = RunCacheBench({.shared = 0});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->hits, 0);
}

// A naive least-recently-used store over the same draws: a system prompt or own
// beginning of one block, and behind it a tail of one block.
TEST(CacheBenchTest, AgreesWithANaiveStore) {
  CacheBenchOptions options;
  options.system_tokens = 16;
  options.tail_tokens = 16;
  options.system_prompts = 40;
  options.entries = 30;
  const auto result = RunCacheBench(options);
  ASSERT_TRUE(result.ok()) << result.status();

  struct Entry {
    int parent = -1;
    int last_use = 0;
  };
  std::map<int, Entry> store;
  int tick = 0;
  auto evict = [&](int held) {
    int victim = -1;
    for (const auto& [id, entry] : store) {
      const bool leaf =
          std::none_of(store.begin(), store.end(),
                       [&](const auto& e) { return e.second.parent == id; });
      if (id != held && leaf &&
          (victim < 0 || entry.last_use < store[victim].last_use)) {
        victim = id;
      }
    }
    store.erase(victim);
  };
  SeededRandom random(options.seed);
  auto skip = [&](int tokens) {
    for (int i = 0; i < tokens; ++i) random.Below(50000);
  };
  skip(40 * 16);  // the system prompts
  int hits = 0, evicted = 0, alone = 1000;
  for (int i = 0; i < options.requests; ++i) {
    int head = ++alone;
    if (random.Uniform() < options.shared) {
      head = static_cast<int>(random.Below(40));
    } else {
      skip(16);
    }
    skip(16);
    const bool hit = store.contains(head);
    hits += hit;
    ++tick;
    if (hit) store[head].last_use = tick;
    for (; store.size() + (hit ? 1 : 2) > 30; ++evicted) evict(head);
    if (!hit) store[head] = {-1, ++tick};
    store[++alone] = {head, ++tick};
  }
  EXPECT_EQ(result->hits, hits);
  EXPECT_EQ(result->evicted, evicted);
  EXPECT_GT(hits, 100);
}

TEST(CacheBenchTest, SaysWhatIsWrong) {
  EXPECT_FALSE(RunCacheBench({.entries = 17}).ok());
  EXPECT_FALSE(RunCacheBench({.shared = 1.5}).ok());
  EXPECT_FALSE(RunCacheBench({.requests = 0}).ok());
}

}  // namespace
}  // namespace penstock
