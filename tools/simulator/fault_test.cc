#include "tools/simulator/fault.h"

#include <set>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(FaultTest, OneLineSaysAllOfIt) {
  Fault fault{FaultKind::kKill, absl::Milliseconds(1500),
              absl::Milliseconds(200), "prefill0"};
  EXPECT_EQ(FormatFault(fault), "kill at 1.5s for 200ms host prefill0");
  fault = {FaultKind::kPageCorrupted,
           absl::ZeroDuration(),
           absl::Seconds(2),
           "prefill1",
           "decode0",
           0.25};
  EXPECT_EQ(
      FormatFault(fault),
      "page-corrupted at 0 for 2s host prefill1 peer decode0 amount 0.25");
}

TEST(FaultTest, EveryKindComesBack) {
  std::set<std::string> names;
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    Fault fault{static_cast<FaultKind>(kind),
                absl::Nanoseconds(1234567891) * (kind + 1),
                absl::Nanoseconds(kind) * 1001,
                kind % 2 == 0 ? "router" : "decode12",
                kind % 3 == 0 ? "" : "prefill3",
                1.0 / (kind + 1)};
    names.insert(std::string(FaultName(fault.kind)));
    auto back = ParseFault(FormatFault(fault));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, fault) << FormatFault(fault);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kFaultKinds));
}

TEST(FaultTest, WhatIsNoFaultIsNamed) {
  for (const char* bad :
       {"", "fire at 1s", "kill at", "kill at soon", "kill at -1s",
        "kill at 1s host", "kill at 1s amount much", "kill at 1s colour red"}) {
    EXPECT_EQ(ParseFault(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

}  // namespace
}  // namespace penstock
