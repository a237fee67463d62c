#include "router/core/admission/admission_queue.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/random.h"
#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AdmissionQueueTest : public ::testing::Test {
 protected:
  void Make() { queue_.emplace(options_); }
  Instant At(int ms) const {
    return Instant::FromNanos(1) + absl::Milliseconds(ms);
  }
  absl::StatusOr<std::optional<AdmissionQueue::Id>> Push(
      const std::string& tenant, int64_t work = 1, int priority = 0,
      int ms = 0) {
    if (!queue_.has_value()) Make();
    auto pushed = queue_->Push({++last_, tenant, priority, work, At(ms)});
    EXPECT_TRUE(queue_->Check().ok()) << queue_->Check();
    return pushed;
  }
  AdmissionQueue::Id PopFront(int ms = 0) {
    const auto id = queue_->Front();
    EXPECT_TRUE(id.has_value());
    EXPECT_EQ(id, queue_->Front()) << "asking changes nothing";
    queue_->Pop(*id, At(ms));
    EXPECT_TRUE(queue_->Check().ok()) << queue_->Check();
    return *id;
  }

  AdmissionQueue::Options options_;
  std::optional<AdmissionQueue> queue_;
  AdmissionQueue::Id last_ = 0;
};

TEST_F(AdmissionQueueTest, OfEqualsTheFirstGoesFirst) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Push("a", 5).ok());
  EXPECT_EQ(PopFront(), 1u);
  EXPECT_EQ(PopFront(), 2u);
  EXPECT_EQ(PopFront(), 3u);
  EXPECT_EQ(queue_->Front(), std::nullopt);
}

TEST_F(AdmissionQueueTest, AHigherPriorityGoesFirst) {
  ASSERT_TRUE(Push("a", 5, -1).ok());
  ASSERT_TRUE(Push("a", 5, 0).ok());
  ASSERT_TRUE(Push("b", 500000, 2).ok());
  EXPECT_EQ(PopFront(), 3u);
  EXPECT_EQ(PopFront(), 2u);
  EXPECT_EQ(PopFront(), 1u);
}

// Work counts, not requests: a's are four times as long as b's.
TEST_F(AdmissionQueueTest, TenantsGetTheirWeightsShareOfTheWork) {
  options_.max_queued = 10000;
  options_.quantum = 64;
  options_.tenants["a"].weight = 3;
  std::map<AdmissionQueue::Id, std::pair<std::string, int>> known;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Push("a", 400).ok());
    known[last_] = {"a", 400};
    ASSERT_TRUE(Push("b", 100).ok());
    known[last_] = {"b", 100};
  }
  std::map<std::string, int> work;
  for (int total = 0; total < 100000;) {
    const auto& [tenant, own] = known.at(PopFront());
    work[tenant] += own;
    total += own;
  }
  EXPECT_NEAR(work["a"], 75000, 600);
  EXPECT_NEAR(work["b"], 25000, 600);
}

TEST_F(AdmissionQueueTest, WhoWantsNothingSavesUpNothing) {
  options_.quantum = 10;
  ASSERT_TRUE(Push("a", 10).ok());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Push("b", 10).ok());
  EXPECT_EQ(PopFront(), 1u);
  for (int i = 0; i < 10; ++i) PopFront();
  // It was away for ten turns, and gets one in two from now on.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Push("a", 10).ok());
  int from_a = 0;
  for (int i = 0; i < 4; ++i) from_a += PopFront() > 21;
  EXPECT_EQ(from_a, 2);
}

TEST_F(AdmissionQueueTest, AVeryLongRequestsTurnComesAtOnceWhenItIsAlone) {
  options_.quantum = 1;
  ASSERT_TRUE(Push("a", int64_t{1} << 40).ok());
  EXPECT_EQ(PopFront(), 1u);
}

TEST_F(AdmissionQueueTest, ATenantAtItsQuotaWaitsAndTheOthersDoNot) {
  options_.tenants["a"].max_running = 1;
  Make();
  queue_->Began("a");
  EXPECT_FALSE(queue_->MayRun("a"));
  ASSERT_TRUE(Push("a").ok());
  EXPECT_EQ(queue_->Front(), std::nullopt);
  ASSERT_TRUE(Push("b").ok());
  EXPECT_EQ(PopFront(), 2u);
  EXPECT_EQ(queue_->Front(), std::nullopt);
  queue_->Ended("a");
  EXPECT_EQ(PopFront(), 1u);
}

TEST_F(AdmissionQueueTest, BoundsAreRefusedByName) {
  options_.max_queued = 2;
  options_.tenants["a"].max_queued = 1;
  ASSERT_TRUE(Push("a").ok());
  const auto refused = Push("a");
  EXPECT_EQ(ErrorInfoOf(refused.status()).reason, ErrorReason::kQueueFull);
  ASSERT_TRUE(Push("b").ok());
  EXPECT_EQ(ErrorInfoOf(Push("b").status()).reason, ErrorReason::kQueueFull);
  EXPECT_EQ(queue_->size(), 2);
}

TEST_F(AdmissionQueueTest, AFullQueueGivesUpALowerPriority) {
  options_.max_queued = 2;
  ASSERT_TRUE(Push("a", 1, 0).ok());
  ASSERT_TRUE(Push("a", 1, 1).ok());
  EXPECT_FALSE(Push("a", 1, -1).ok());
  EXPECT_FALSE(Push("a", 1, 0).ok()) << "the first to come stays";
  const auto pushed = Push("a", 1, 1);
  ASSERT_TRUE(pushed.ok());
  EXPECT_EQ(*pushed, 1u);
  EXPECT_EQ(PopFront(), 2u);
}

// Else who asks most often had most of the queue, whatever the weights.
TEST_F(AdmissionQueueTest, AFullQueueIsSharedByWeight) {
  options_.max_queued = 8;
  options_.tenants["a"].weight = 3;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Push("b").ok());
  for (int i = 0; i < 6; ++i) {
    const auto pushed = Push("a");
    ASSERT_TRUE(pushed.ok());
    EXPECT_EQ(*pushed, AdmissionQueue::Id(8 - i)) << "b's newest";
  }
  EXPECT_FALSE(Push("a").ok());
  EXPECT_FALSE(Push("b").ok());
}

TEST_F(AdmissionQueueTest, WhatIsTooOldIsTold) {
  options_.max_age = absl::Milliseconds(100);
  EXPECT_TRUE(Push("a", 1, 0, 10).ok());
  EXPECT_TRUE(Push("b", 1, 5, 20).ok());
  EXPECT_EQ(queue_->next_expiry(), At(110));
  EXPECT_THAT(queue_->Expired(At(109)), IsEmpty());
  EXPECT_THAT(queue_->Expired(At(110)), ElementsAre(1u));
  EXPECT_THAT(queue_->Expired(At(120)), ElementsAre(1u, 2u));
  queue_->Remove(1);
  queue_->Remove(1);
  EXPECT_EQ(queue_->next_expiry(), At(120));
}

// 10 units of work a second go; 100 wait.
TEST_F(AdmissionQueueTest, WhatWouldComeTooLateIsRefused) {
  options_.max_age = absl::Seconds(20);
  options_.max_queued = 1000;
  Make();
  int ms = 0;
  for (; ms < 200000; ms += 100) {
    ASSERT_TRUE(Push("a", 1, 0, ms).ok());
    PopFront(ms);
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Push("a", 1, 0, ms).ok());
  EXPECT_NEAR(absl::ToDoubleSeconds(queue_->PredictedWait("a", 0, At(ms))), 10,
              0.3);
  EXPECT_EQ(queue_->PredictedWait("a", 1, At(ms)), absl::ZeroDuration());
  EXPECT_EQ(queue_->PredictedWait("b", 0, At(ms)), absl::ZeroDuration())
      << "another tenant's turn comes at once";
  for (int i = 0; i < 120; ++i) Push("a", 1, 0, ms).IgnoreError();
  EXPECT_LT(queue_->size(), 210);
  EXPECT_EQ(ErrorInfoOf(Push("a", 1, 0, ms).status()).reason,
            ErrorReason::kQueueFull);
}

TEST_F(AdmissionQueueTest, OptionsOutOfRangeAreRefused) {
  options_.max_age = absl::ZeroDuration();
  EXPECT_FALSE(AdmissionQueue::Validate(options_).ok());
  options_ = {};
  options_.tenants["a"].weight = 0;
  EXPECT_NE(AdmissionQueue::Validate(options_).message().find("\"a\""),
            absl::string_view::npos);
  options_ = {};
  options_.quantum = 0;
  EXPECT_FALSE(AdmissionQueue::Validate(options_).ok());
  options_ = {};
  options_.max_queued = -1;
  EXPECT_FALSE(AdmissionQueue::Validate(options_).ok());
  EXPECT_TRUE(AdmissionQueue::Validate({}).ok());
}

// Whatever happens: nobody is lost, nobody goes twice, who goes has the highest
// priority of those that may run and is the oldest of its tenant.
TEST_F(AdmissionQueueTest, RandomOperationsKeepItsPromises) {
  SeededRandom random(5);
  options_.max_queued = 20;
  options_.quantum = 7;
  options_.tenants["t0"] = {2, 2, 0};
  options_.tenants["t1"] = {1, 1, 3};
  Make();
  struct Known {
    std::string tenant;
    int priority;
  };
  std::map<AdmissionQueue::Id, Known> waiting;
  std::map<std::string, int> running;
  for (int step = 0; step < 20000; ++step) {
    const std::string tenant = absl::StrCat("t", random.Below(4));
    switch (random.Below(4)) {
      case 0:
      case 1: {
        const int priority = static_cast<int>(random.Below(3));
        const auto pushed = Push(tenant, 1 + random.Below(40), priority);
        if (!pushed.ok()) break;
        waiting[last_] = {tenant, priority};
        if (pushed->has_value()) {
          ASSERT_EQ(waiting.erase(**pushed), 1u);
        }
        break;
      }
      case 2: {
        const auto front = queue_->Front();
        int best = -1;
        for (const auto& [id, known] : waiting) {
          if (queue_->MayRun(known.tenant)) {
            best = std::max(best, known.priority);
          }
        }
        ASSERT_EQ(front.has_value(), best >= 0);
        if (!front.has_value()) break;
        const Known gone = waiting.at(*front);
        EXPECT_EQ(gone.priority, best);
        for (const auto& [id, known] : waiting) {
          if (id >= *front) break;
          EXPECT_FALSE(known.tenant == gone.tenant &&
                       known.priority == gone.priority);
        }
        queue_->Pop(*front, At(0));
        waiting.erase(*front);
        queue_->Began(gone.tenant);
        ++running[gone.tenant];
        break;
      }
      default:
        if (random.Below(2) == 0 && running[tenant] > 0) {
          queue_->Ended(tenant);
          --running[tenant];
        } else if (!waiting.empty()) {
          auto it = waiting.begin();
          std::advance(it, random.Below(waiting.size()));
          queue_->Remove(it->first);
          waiting.erase(it);
        }
    }
    ASSERT_TRUE(queue_->Check().ok()) << queue_->Check();
    ASSERT_EQ(queue_->size(), static_cast<int>(waiting.size()));
    ASSERT_LE(queue_->size(), options_.max_queued);
    ASSERT_LE(running["t1"], 1);
  }
}

}  // namespace
}  // namespace penstock
