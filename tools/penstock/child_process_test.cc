#include "tools/penstock/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

constexpr int kDeadlineMs = 10'000;

std::unique_ptr<ChildProcess> Shell(const std::string& script,
                                    int inherit = -1) {
  auto child =
      ChildProcess::Start({"shell", "/bin/sh", {"-c", script}, inherit});
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

// Everything the stream brings until it ends.
std::vector<std::string> ReadAll(ChildProcess::Stream& stream) {
  std::vector<std::string> lines;
  while (stream.fd >= 0) {
    pollfd fd = {stream.fd, POLLIN, 0};
    if (poll(&fd, 1, kDeadlineMs) != 1) {
      ADD_FAILURE() << "nothing within the deadline";
      break;
    }
    for (std::string& line : ChildProcess::ReadLines(stream)) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

// The stream of a process that is ending; then it can be reaped at once, or
// within the few instructions between close and exit.
int WaitForEnd(ChildProcess& child) {
  ReadAll(child.out());
  ReadAll(child.err());
  while (true) {
    if (const auto status = child.TryReap()) return *status;
  }
}

TEST(ChildProcessTest, SplitsStreamsIntoLines) {
  const auto child = Shell("echo one; echo two >&2; printf 'thr'; printf ee");
  EXPECT_THAT(ReadAll(child->out()), ElementsAre("one", "three"));
  EXPECT_THAT(ReadAll(child->err()), ElementsAre("two"));
}

TEST(ChildProcessTest, TellsHowItEnded) {
  EXPECT_EQ(DescribeExit(WaitForEnd(*Shell("exit 3"))), "exited with status 3");
  const auto child = Shell("exec sleep 60");
  child->Signal(SIGTERM);
  EXPECT_EQ(DescribeExit(WaitForEnd(*child)), "was ended by signal 15");
}

TEST(ChildProcessTest, MissingProgramIsNotFound) {
  const auto child = ChildProcess::Start({"none", "/nonexistent/program", {}});
  EXPECT_EQ(child.status().code(), absl::StatusCode::kNotFound);
}

TEST(ChildProcessTest, ChildReadsTheInheritedDescriptor) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(write(fd, "secret\n", 7), 7);
  // Twice: each opening starts at the front.
  for (int i = 0; i < 2; ++i) {
    const auto child = Shell("cat /proc/self/fd/3", fd);
    EXPECT_THAT(ReadAll(child->out()), ElementsAre("secret"));
  }
  close(fd);
}

TEST(ChildProcessTest, DestructionEndsTheChild) {
  pid_t pid = 0;
  {
    const auto child = Shell("exec sleep 60");
    pid = child->pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  // Reaped: the number names no process of ours any more.
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(ChildProcessTest, EndlessLinesAreCut) {
  const auto child = Shell("head -c 1000000 /dev/zero | tr '\\0' x");
  size_t bytes = 0;
  for (const std::string& line : ReadAll(child->out())) {
    EXPECT_LE(line.size(), 100'000u);
    bytes += line.size();
  }
  EXPECT_EQ(bytes, 1'000'000u);
}

}  // namespace
}  // namespace penstock
