// How the default policy places a request whose KV some workers keep.

#include <map>
#include <string>
#include <vector>

#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/worker_registry.h"

namespace penstock {
namespace {

using Health = WorkerHealth;

class KeptPlacementTest : public ::testing::Test {
 protected:
  void Add(const std::string& name, WorkerRoles roles,
           Health health = Health::kReady, int active = 0) {
    WorkerInfo info;
    info.key = {name, Incarnation(1)};
    info.roles = roles;
    info.control_address = name;
    info.content = ContentId(7);
    info.total_blocks = 1000;
    info.max_sequences = 4;
    info.transports = {TransportKind::kTcp};
    ASSERT_TRUE(registry_.Register(info).ok());
    WorkerLoad load;
    load.health = health;
    load.active_requests = active;
    load.total_blocks = load.free_blocks = 1000;
    ASSERT_TRUE(registry_.Report(info.key, load).ok());
  }
  void Keep(const std::string& name, int tokens, uint64_t incarnation = 1) {
    kept_.push_back({{name, Incarnation(incarnation)}, tokens});
  }
  // "prefill > decode"; "decode" when it prefills by itself; or the reason.
  std::string Place(int prompt_tokens = 1000) {
    facts_.prompt_tokens = prompt_tokens;
    facts_.max_tokens = 64;
    facts_.kept = kept_;
    facts_.avoid = avoid_;
    PlacementPolicy policy({.kv_bytes_per_token = 23040},
                           *CostModel::Create({}));
    placed_ = policy.Place(facts_, registry_.view(), random_);
    if (!placed_.ok()) {
      return std::string(ReasonName(ErrorInfoOf(placed_.status()).reason));
    }
    const std::string decode = placed_->decode.worker.name;
    return placed_->prefill ? placed_->prefill->worker.name + " > " + decode
                            : decode;
  }

  static constexpr WorkerRoles kPrefill{true, false}, kDecode{false, true};

  ManualClock clock_;
  Timers timers_;
  WorkerRegistry registry_{
      {.content = ContentId(7)}, clock_, timers_, [](auto&&...) {}};
  SeededRandom random_{1};
  RequestFacts facts_;
  std::vector<KeptPrefix> kept_;
  std::vector<std::string> avoid_;
  absl::StatusOr<Placement> placed_ = absl::UnknownError("none yet");
};

TEST_F(KeptPlacementTest, APrefillThatKeepsIsChosen) {
  for (const char* name : {"p1", "p2", "p3"}) Add(name, kPrefill);
  Add("d", kDecode);
  Keep("p2", 1000);
  EXPECT_EQ(Place(), "p2 > d");
  EXPECT_EQ(placed_->prefill->cached_tokens, 999) << "one is always computed";
  EXPECT_EQ(placed_->prefill->load.time,
            CostModel::Create({})->Prefill(1, 999));
}

TEST_F(KeptPlacementTest, WhatAnotherLifeKeptIsGone) {
  Add("p", kPrefill);
  Add("d", kDecode);
  Keep("p", 1000, 2);
  EXPECT_EQ(Place(), "p > d");
  EXPECT_EQ(placed_->prefill->cached_tokens, 0);
}

TEST_F(KeptPlacementTest, ADrainingDecodePrefillsForAnother) {
  Add("p", kPrefill);
  Add("d1", kDecode, Health::kDraining);
  Add("d2", kDecode);
  Keep("d1", 1000);
  EXPECT_EQ(Place(), "d1 > d2");
  avoid_ = {"d1"};
  EXPECT_EQ(Place(), "d1 > d2") << "it is to be left out as decode only";
  kept_.clear();
  EXPECT_EQ(Place(), "p > d2");
}

TEST_F(KeptPlacementTest, ADrainingDecodeTakesBackWhatNobodyElseCan) {
  Add("d1", kDecode, Health::kDraining);
  EXPECT_EQ(Place(), "NO_WORKERS");
  Keep("d1", 1000);
  EXPECT_EQ(Place(), "d1");
  avoid_ = {"d1"};
  EXPECT_EQ(Place(), "NO_WORKERS");
  avoid_.clear();
  Add("d2", kDecode, Health::kReady, 8);  // full
  EXPECT_EQ(Place(), "d1");
  Add("d3", kDecode, Health::kReady, 7);
  EXPECT_EQ(Place(), "d1 > d3");
}

TEST_F(KeptPlacementTest, AFailedWorkerKeepsNothing) {
  Add("d1", kDecode, Health::kFailed);
  Keep("d1", 1000);
  EXPECT_EQ(Place(), "NO_WORKERS");
}

TEST_F(KeptPlacementTest, WhoKeepsTheKvHasRoomForIt) {
  Add("p1", kPrefill, Health::kReady, 8);  // full
  Add("d", kDecode);
  EXPECT_EQ(Place(), "QUEUE_FULL");
  Keep("p1", 1000);
  EXPECT_EQ(Place(), "p1 > d");
}

TEST_F(KeptPlacementTest, DecodeComputesATailThatIsShorterThanAnothersPrompt) {
  Add("p", kPrefill);
  Add("d1", kDecode);
  Add("d2", kDecode);
  Keep("d2", 800);
  EXPECT_EQ(Place(), "d2");
  EXPECT_EQ(placed_->decode.cached_tokens, 800);
  // Prefill has more of it, and less to send.
  Keep("p", 1000);
  EXPECT_EQ(Place(), "p > d2");
}

TEST_F(KeptPlacementTest, AnswersThatHavePartedNeedNoPrefill) {
  Add("p", kPrefill);
  Add("d", kDecode);
  facts_.answers = 3;
  EXPECT_EQ(Place(), "p > d");
  facts_.decode_alone = true;
  EXPECT_EQ(Place(), "d");
}

// 1000 blocks: a prompt of 62 full blocks and 8 tokens, and 5 blocks of one's
// own for the tail and 64 tokens more.
TEST_F(KeptPlacementTest, BeamsHaveToBeThereAtOnce) {
  Add("d", kDecode);
  facts_.beams = true;
  facts_.answers = 187;
  EXPECT_EQ(Place(), "d");
  facts_.answers = 188;
  EXPECT_EQ(Place(), "KV_TOO_SMALL");
  facts_.beams = false;
  EXPECT_EQ(Place(), "d") << "samples can run one after the other";
}

}  // namespace
}  // namespace penstock
