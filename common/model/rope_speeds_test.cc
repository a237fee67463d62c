#include <cmath>
#include <vector>

#include "common/model/model_spec.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Expected values: transformers 5's ROPE_INIT_FUNCTIONS, printed by
//   ROPE_INIT_FUNCTIONS[type](config, "cpu")[0]
// for a head of 8 dimensions and base 10000.
void ExpectSpeeds(const RopeSpec& rope, int context_length,
                  const std::vector<double>& expected) {
  std::vector<double> speeds = RopeSpeeds(rope, context_length);
  ASSERT_EQ(speeds.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(speeds[i], expected[i], 2e-6 * expected[i]) << "pair " << i;
  }
}

TEST(RopeSpeedsTest, Plain) {
  ExpectSpeeds({.dimensions = 8}, 64, {1, 0.1, 0.01, 0.001});
}

TEST(RopeSpeedsTest, Linear) {
  ExpectSpeeds({.dimensions = 8, .scaling = RopeScaling::kLinear, .factor = 4},
               256, {0.25, 0.025, 0.0025, 0.00025});
}

// The base grows only once the context is longer than the original one.
TEST(RopeSpeedsTest, DynamicNtk) {
  const RopeSpec rope{.dimensions = 8,
                      .scaling = RopeScaling::kDynamicNtk,
                      .factor = 4,
                      .original_context = 64};
  ExpectSpeeds(rope, 64, {1, 0.1, 0.01, 0.001});
  ExpectSpeeds(rope, 256, {1, 0.0425290354, 0.00180871889, 7.69230755e-05});
}

TEST(RopeSpeedsTest, Yarn) {
  ExpectSpeeds({.dimensions = 8,
                .scaling = RopeScaling::kYarn,
                .factor = 4,
                .original_context = 64},
               256, {1, 0.0625, 0.0025, 0.00025});
}

TEST(RopeSpeedsTest, Llama3) {
  ExpectSpeeds({.dimensions = 8,
                .scaling = RopeScaling::kLlama3,
                .factor = 8,
                .original_context = 64},
               256, {1, 0.0130422562, 0.00125, 0.000125});
}

TEST(RopeSpeedsTest, Divisors) {
  ExpectSpeeds({.dimensions = 8,
                .scaling = RopeScaling::kDivisors,
                .divisors = {1, 2, 4, 8}},
               256, {1, 0.05, 0.0025, 0.000125});
}

TEST(RopeSpeedsDeathTest, ADivisorForEachPair) {
  EXPECT_DEATH(RopeSpeeds({.dimensions = 8,
                           .scaling = RopeScaling::kDivisors,
                           .divisors = {1, 2}},
                          64),
               "CHECK failed");
}

}  // namespace
}  // namespace penstock
