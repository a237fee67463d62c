#include "router/core/cluster_view.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "gtest/gtest.h"
#include "router/core/testing/view_worker.h"
#include "router/core/worker_registry.h"

namespace penstock {
namespace {

class ClusterViewTest : public ::testing::Test {
 protected:
  ClusterViewTest()
      : registry_({.content = ContentId(7)}, clock_, timers_,
                  [](auto&&...) {}) {}

  void Lose(const std::string& name) {
    registry_.Lose({name, Incarnation(1)}, absl::OkStatus());
  }
  const ClusterView& view() const { return registry_.view(); }

  // What the columns say of each worker, and that they speak of no other.
  void CompareColumns() const {
    const WorkerColumns& c = view().columns;
    int64_t capacity = std::numeric_limits<int64_t>::max();
    int context = std::numeric_limits<int>::max();
    for (const auto& [name, worker] : view().workers) {
      const WorkerSlot slot = worker.slot;
      EXPECT_EQ(&view().At(slot), &worker);
      EXPECT_EQ(c.prefill.Contains(slot), worker.info.roles.prefill);
      EXPECT_EQ(c.decode.Contains(slot), worker.info.roles.decode);
      EXPECT_EQ(c.ready.Contains(slot), worker.ready());
      EXPECT_EQ(c.requests[slot], worker.PredictedRequests());
      EXPECT_EQ(c.ahead[slot],
                absl::ToDoubleSeconds(worker.PredictedTime(
                    WorkEstimate().Ahead(worker.info, worker.reported))));
      for (const auto& [other_name, other] : view().workers) {
        EXPECT_EQ(c.pairing[slot] == c.pairing[other.slot],
                  worker.info.layout == other.info.layout);
        EXPECT_EQ(view().CanHandOff(c.pairing[slot], c.pairing[other.slot]),
                  worker.info.layout == other.info.layout);
      }
      capacity = std::min<int64_t>(capacity, 16 * worker.info.total_blocks);
      context = std::min(context, worker.info.context_length);
    }
    const size_t workers = view().workers.size();
    for (const SlotSet* set : {&c.prefill, &c.decode, &c.on_time, &c.room}) {
      EXPECT_EQ(set->count(), workers);
    }
    if (workers == 0) return;
    EXPECT_EQ(c.least_capacity, capacity);
    EXPECT_EQ(c.least_context, context);
  }

  ManualClock clock_;
  Timers timers_;
  WorkerRegistry registry_;
};

TEST_F(ClusterViewTest, FollowsWorkersThatComeChangeAndGo) {
  SeededRandom random(3);
  std::set<std::string> there;
  for (int step = 0; step < 3000; ++step) {
    const std::string name = absl::StrCat("w", random.Below(100));
    if (!there.contains(name)) {
      WorkerInfo info = ViewWorker(name, 1 + static_cast<int>(random.Below(4)));
      info.context_length = 100'000 + static_cast<int>(random.Below(5));
      info.total_blocks = 1000 + static_cast<int>(random.Below(5));
      ASSERT_TRUE(registry_.Register(info).ok());
      there.insert(name);
    } else if (random.Below(2) == 0) {
      Lose(name);
      there.erase(name);
    } else {
      WorkerLoad load;
      load.health = WorkerHealth::kReady;
      load.active_requests = static_cast<int>(random.Below(9));
      ASSERT_TRUE(registry_.Report({name, Incarnation(1)}, load).ok());
    }
    ASSERT_EQ(view().workers.size(), there.size());
    if (step % 50 == 0) CompareColumns();
  }
  // Numbers of pairings are used again.
  EXPECT_LE(view().pairings(), 4);
}

TEST_F(ClusterViewTest, KnowsTheOnlyPairing) {
  EXPECT_FALSE(view().OnlyPairing().has_value());
  ASSERT_TRUE(registry_.Register(ViewWorker("a")).ok());
  EXPECT_EQ(view().OnlyPairing(), view().columns.pairing[0]);
  ASSERT_TRUE(registry_.Register(ViewWorker("b", 2)).ok());
  EXPECT_FALSE(view().OnlyPairing().has_value());
  Lose("a");
  EXPECT_EQ(view().OnlyPairing(), view().columns.pairing[1]);
}

TEST_F(ClusterViewTest, HasWholeWordsOfSlots) {
  for (int i = 0; i < 65; ++i) {
    ASSERT_TRUE(registry_.Register(ViewWorker(absl::StrCat("w", i))).ok());
  }
  EXPECT_EQ(view().columns.ready.size(), 128u);
  EXPECT_EQ(view().columns.ahead.size(), 128u);
}

}  // namespace
}  // namespace penstock
