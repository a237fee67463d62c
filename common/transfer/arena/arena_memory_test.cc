#include "common/transfer/arena/arena_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(ArenaMemoryTest, IsZeroedAndSharedByDescriptor) {
  auto memory = ArenaMemory::Create(10000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  absl::Span<uint8_t> bytes = (*memory)->arena().bytes;
  ASSERT_EQ(bytes.size(), 10000u);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 10000);

  bytes[9999] = 42;
  void* view =
      mmap(nullptr, 10000, PROT_READ, MAP_SHARED, (*memory)->arena().fd, 0);
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_EQ(static_cast<const uint8_t*>(view)[9999], 42);
  munmap(view, 10000);
}

TEST(ArenaMemoryTest, NobodyElseCanWriteOrResizeIt) {
  auto memory = ArenaMemory::Create(10000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  int fd = (*memory)->arena().fd;
  EXPECT_EQ(mmap(nullptr, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
            MAP_FAILED);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_NE(ftruncate(fd, 20000), 0);
  EXPECT_NE(write(fd, "x", 1), 1);
}

TEST(ArenaMemoryTest, TooMuchIsAnError) {
  EXPECT_EQ(ArenaMemory::Create(0).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ArenaMemory::Create(uint64_t{1} << 62).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace penstock
