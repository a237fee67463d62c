#include "router/http/server/request_path.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(RequestPathTest, LeavesQueryAndFragment) {
  EXPECT_EQ(RequestPath("/v1/models"), "/v1/models");
  EXPECT_EQ(RequestPath("/v1/models?after=x/y"), "/v1/models");
  EXPECT_EQ(RequestPath("/v1/models#top"), "/v1/models");
  EXPECT_EQ(RequestPath("*"), "*");
  EXPECT_EQ(RequestPath(""), "");
}

TEST(RequestPathTest, TakesThePathOfAnAbsoluteTarget) {
  EXPECT_EQ(RequestPath("http://host:80/v1/chat?x"), "/v1/chat");
  EXPECT_EQ(RequestPath("http://host"), "");
}

TEST(RequestPathTest, DecodesPercents) {
  EXPECT_EQ(RequestPath("/v1/%6dodels/a%2Fb"), "/v1/models/a/b");
  EXPECT_EQ(RequestPath("/%3f%23"), "/?#");
  EXPECT_EQ(RequestPath("/a%00b"), std::string("/a\0b", 4));
}

TEST(RequestPathTest, KeepsWhatIsNoEncoding) {
  EXPECT_EQ(RequestPath("/a%"), "/a%");
  EXPECT_EQ(RequestPath("/a%4"), "/a%4");
  EXPECT_EQ(RequestPath("/a%4g%zz"), "/a%4g%zz");
  // Decoded once: what comes out is not read again.
  EXPECT_EQ(RequestPath("/%2541"), "/%41");
}

}  // namespace
}  // namespace penstock
