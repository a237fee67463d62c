#include "common/transfer/tcp/tcp_address.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(TcpAddressTest, RoundTrips) {
  for (const char* text :
       {"127.0.0.1:0", "10.1.2.3:65535", "[::1]:4711", "[fe80::12]:1"}) {
    auto address = TcpAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(TcpAddressTest, RefusesWhatIsNotNumeric) {
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
        "localhost:1", ":1", "::1:80", "[::1:80", "1.2.3:4", "[]:1"}) {
    EXPECT_EQ(TcpAddress::Parse(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(TcpAddressTest, WithHostKeepsThePort) {
  auto address = TcpAddress::Parse("0.0.0.0:4711");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->WithHost("10.0.0.7")->ToString(), "10.0.0.7:4711");
  EXPECT_EQ(address->WithHost("fd00::7")->ToString(), "[fd00::7]:4711");
  EXPECT_EQ(address->WithHost("[fd00::7]")->ToString(), "[fd00::7]:4711");
  EXPECT_FALSE(address->WithHost("worker-3").ok());
}

}  // namespace
}  // namespace penstock
