#include "router/core/leg_source.h"

#include <string>
#include <vector>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/model/kv_layout.h"
#include "gtest/gtest.h"
#include "router/core/testing/view_worker.h"
#include "router/core/worker_registry.h"

namespace penstock {
namespace {

class LegSourceTest : public testing::Test {
 protected:
  LegSourceTest() {
    for (uint64_t hash = 1; hash <= 20; ++hash) chain_.emplace_back(hash);
  }

  // A ready worker with so many leading blocks of the chain.
  void Add(const std::string& name, int blocks, int layout = 1) {
    const WorkerInfo info = ViewWorker(name, layout);
    ASSERT_TRUE(registry_.Register(info).ok());
    WorkerLoad load;
    load.health = WorkerHealth::kReady;
    ASSERT_TRUE(registry_.Report(info.key, load).ok());
    if (blocks == 0) return;
    const BlocksStored stored{BlockHash(),
                              {chain_.begin(), chain_.begin() + blocks}};
    registry_.ApplyEvents(info.key, {{1, stored}});
  }

  // "name blocks" of whom a worker is sent to that has so many of its own.
  std::string SourceFor(const std::string& name, int own_blocks) {
    LegPlacement placement;
    placement.worker = {name, Incarnation(1)};
    placement.cached_tokens = own_blocks * kBlockTokens;
    const LegSource source = FindSource(registry_.view(), chain_, placement);
    if (source.owner == nullptr) return "nobody";
    return source.owner->info.key.name + " " + std::to_string(source.blocks);
  }

  std::vector<BlockHash> chain_;
  ManualClock clock_;
  Timers timers_;
  WorkerRegistry registry_{
      {.content = ContentId(7)}, clock_, timers_, [](auto&&...) {}};
};

TEST_F(LegSourceTest, TheOneThatHasMost) {
  Add("a", 0);
  EXPECT_EQ(SourceFor("a", 0), "nobody");
  Add("b", 8);
  Add("c", 20);
  Add("d", 12);
  EXPECT_EQ(SourceFor("a", 0), "c 20");
  EXPECT_EQ(SourceFor("b", 8), "c 20");
  EXPECT_EQ(SourceFor("c", 20), "nobody");
  EXPECT_EQ(SourceFor("d", 16), "c 20");
  EXPECT_EQ(SourceFor("d", 17), "nobody") << "hardly more";
}

TEST_F(LegSourceTest, OnlyOneWhosePagesItCanTake) {
  Add("a", 0);
  Add("b", 20, /*layout=*/2);
  EXPECT_EQ(SourceFor("a", 0), "nobody");
  Add("c", 10);
  EXPECT_EQ(SourceFor("a", 0), "c 10");
  EXPECT_EQ(SourceFor("unknown", 0), "nobody");
}

TEST_F(LegSourceTest, ADrainingWorkerStillGives) {
  Add("a", 0);
  Add("b", 10);
  EXPECT_TRUE(registry_.NoteDraining({"b", Incarnation(1)}));
  EXPECT_EQ(SourceFor("a", 0), "b 10");
  registry_.Lose({"b", Incarnation(1)}, absl::UnavailableError("gone"));
  EXPECT_EQ(SourceFor("a", 0), "nobody");
}

}  // namespace
}  // namespace penstock
