#include "common/engine/handoff_state.h"

#include <set>

#include "gtest/gtest.h"

namespace penstock {
namespace {

template <typename State>
std::set<State> Reachable(State from, State last) {
  std::set<State> seen = {from};
  for (bool grew = true; grew;) {
    grew = false;
    for (State s : std::set<State>(seen)) {
      for (int i = 0; i <= static_cast<int>(last); ++i) {
        State to = static_cast<State>(i);
        if (MayMove(s, to)) grew |= seen.insert(to).second;
      }
    }
  }
  return seen;
}

TEST(HandoffStateTest, EveryStateIsReachedAndEveryStateCanEnd) {
  EXPECT_EQ(Reachable(DecodeState::kOffered, DecodeState::kReleased).size(),
            10u);
  EXPECT_EQ(Reachable(PrefillState::kQueued, PrefillState::kReleased).size(),
            8u);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Reachable(static_cast<DecodeState>(i), DecodeState::kReleased)
                    .contains(DecodeState::kReleased));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(Reachable(static_cast<PrefillState>(i), PrefillState::kReleased)
                    .contains(PrefillState::kReleased));
  }
}

// A mapped block never returns to the pool without a fence.
TEST(HandoffStateTest, MappedStatesReleaseOnlyThroughAFence) {
  for (DecodeState mapped : {DecodeState::kMapped, DecodeState::kReceiving,
                             DecodeState::kCommitted, DecodeState::kRevoking}) {
    EXPECT_FALSE(MayMove(mapped, DecodeState::kReleased)) << StateName(mapped);
  }
}

TEST(HandoffStateTest, NothingLeavesReleased) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(MayMove(DecodeState::kReleased, static_cast<DecodeState>(i)));
  }
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(
        MayMove(PrefillState::kReleased, static_cast<PrefillState>(i)));
  }
}

TEST(HandoffStateDeathTest, AMoveThatIsNotInTheTableAborts) {
  DecodeState state = DecodeState::kMapped;
  EXPECT_DEATH(Move(state, DecodeState::kActive), "MAPPED > ACTIVE");
}

}  // namespace
}  // namespace penstock
