#include "router/core/policy/policy_options.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(PolicyOptionsTest, EveryNameIsOfOnePolicy) {
  std::set<PolicyKind> kinds;
  for (const std::string& name : PolicyNames()) {
    const auto kind = ParsePolicy(name);
    ASSERT_TRUE(kind.ok());
    EXPECT_EQ(PolicyName(*kind), name);
    kinds.insert(*kind);
  }
  EXPECT_EQ(kinds.size(), 7u);
  EXPECT_EQ(ParsePolicy("prefix_aware").value(), PolicyOptions().kind);
}

TEST(PolicyOptionsTest, AnUnknownNameIsToldTheKnownOnes) {
  EXPECT_THAT(std::string(ParsePolicy("fastest").status().message()),
              ::testing::AllOf(::testing::HasSubstr("fastest"),
                               ::testing::HasSubstr("round_robin")));
}

}  // namespace
}  // namespace penstock
