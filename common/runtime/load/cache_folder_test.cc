#include "common/runtime/load/cache_folder.h"

#include <stdlib.h>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(CacheFolderTest, FollowsTheXdgBaseDirectories) {
  setenv("HOME", "/users/x", 1);
  setenv("XDG_CACHE_HOME", "/var/cache", 1);
  EXPECT_EQ(WeightsCacheFolder("auto"), "/var/cache/penstock");
  // The specification: a relative path is invalid and ignored.
  setenv("XDG_CACHE_HOME", "cache", 1);
  EXPECT_EQ(WeightsCacheFolder("auto"), "/users/x/.cache/penstock");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(WeightsCacheFolder("auto"), "/users/x/.cache/penstock");
  unsetenv("HOME");
  EXPECT_EQ(WeightsCacheFolder("auto"), "");
}

TEST(CacheFolderTest, ANameIsItselfAndOffIsNone) {
  EXPECT_EQ(WeightsCacheFolder("/data/weights"), "/data/weights");
  EXPECT_EQ(WeightsCacheFolder("off"), "");
}

}  // namespace
}  // namespace penstock
