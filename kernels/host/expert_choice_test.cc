#include "kernels/host/expert_choice.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

// Logits whose softmax is 0.1, 0.4, 0.2, 0.3.
const std::vector<float> kTenths = {std::log(1.0f), std::log(4.0f),
                                    std::log(2.0f), std::log(3.0f)};

MATCHER_P2(Share, expert, weight, "") {
  return arg.expert == expert && std::abs(arg.weight - weight) < 1e-6;
}

TEST(ExpertChoiceTest, SoftmaxOverAllThenTheBest) {
  EXPECT_THAT(ChooseExperts({.count = 4, .used = 2}, kTenths, {}),
              ElementsAre(Share(1, 0.4), Share(3, 0.3)));
}

TEST(ExpertChoiceTest, NormalisedAndScaled) {
  EXPECT_THAT(
      ChooseExperts({.count = 4, .used = 2, .normalize = true, .scale = 7},
                    kTenths, {}),
      ElementsAre(Share(1, 4.0), Share(3, 3.0)));
}

TEST(ExpertChoiceTest, SigmoidOfEach) {
  const ExpertSpec spec = {
      .count = 3, .used = 1, .gating = ExpertGating::kSigmoid};
  // 1 / (1 + 1/3).
  EXPECT_THAT(ChooseExperts(spec, {-1.0f, std::log(3.0f), 0.0f}, {}),
              ElementsAre(Share(1, 0.75)));
}

// The bias decides who is chosen, not what the chosen count for.
TEST(ExpertChoiceTest, ABiasEntersTheChoiceOnly) {
  EXPECT_THAT(ChooseExperts({.count = 4, .used = 2}, kTenths, {1, 0, 1, 0}),
              ElementsAre(Share(0, 0.1), Share(2, 0.2)));
}

// Groups {0.1, 0.4} and {0.2, 0.3}: the first has the best expert, neither has
// the larger sum of two; with a bias of 0.05 on expert 2 the second has.
TEST(ExpertChoiceTest, TheStrongestGroupsFirst) {
  ExpertSpec spec = {.count = 4, .used = 2, .groups = 2, .groups_used = 1};
  EXPECT_THAT(ChooseExperts(spec, kTenths, {}),
              ElementsAre(Share(0, 0.1), Share(1, 0.4)));
  spec.group_score = ExpertGroupScore::kSumOfBestTwo;
  EXPECT_THAT(ChooseExperts(spec, kTenths, {0, 0, 0.05f, 0}),
              ElementsAre(Share(2, 0.2), Share(3, 0.3)));
}

TEST(ExpertChoiceTest, TiesGoToTheLowestIndex) {
  EXPECT_THAT(ChooseExperts({.count = 4, .used = 2}, {0, 0, 0, 0}, {}),
              ElementsAre(Share(0, 0.25), Share(1, 0.25)));
}

TEST(ExpertChoiceTest, FarLogitsAreFine) {
  const ExpertSpec spec = {.count = 2, .used = 2, .normalize = true};
  EXPECT_THAT(ChooseExperts(spec, {3e38f, -3e38f}, {}),
              ElementsAre(Share(0, 1.0), Share(1, 0.0)));
}

}  // namespace
}  // namespace penstock
