// A process that stores pages is killed at any moment; what it had been told is
// stored is there, and nothing wrong.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/env/random.h"
#include "common/transfer/socket/unique_fd.h"
#include "gtest/gtest.h"
#include "kvstore/disk/disk_tier.h"
#include "tests/contract/tier_bench.h"

namespace penstock {
namespace {

// Runs a disk_tier_peer, kills it after it said `lines` lines; every line that
// it had said by then. Nothing: this machine does not permit its input and
// output.
std::optional<std::vector<int>> StoreAndDie(std::vector<std::string> arguments,
                                            uint64_t lines) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  const UniqueFd output(ends[0]);
  UniqueFd theirs(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  arguments.insert(arguments.begin(), PENSTOCK_DISK_TIER_PEER);
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  pid_t pid = -1;
  CHECK(posix_spawn(&pid, raw[0], &actions, nullptr, raw.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  theirs = UniqueFd();
  std::vector<int> said;
  std::string line;
  char c = 0;
  bool killed = false;
  while (read(output.get(), &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    said.push_back(std::stoi(line));
    line.clear();
    if (said.size() >= lines && !killed) {
      killed = true;
      kill(pid, SIGKILL);
    }
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) return std::nullopt;
  CHECK(killed) << "it ended by itself: " << status;
  return said;
}

class DiskTierKillTest : public testing::TestWithParam<std::string> {};

TEST_P(DiskTierKillTest, AcknowledgedPagesOutliveTheProcess) {
  TemporaryFolder folder;
  TierBench bench;
  SeededRandom random(5);
  std::vector<TierKey> acknowledged;
  for (uint64_t round = 1; round <= 8; ++round) {
    const auto said =
        StoreAndDie({folder.path(), GetParam(), std::to_string(round)},
                    1 + random.Below(600));
    if (!said.has_value()) GTEST_SKIP() << "not permitted on this machine";
    const auto keys = bench.Chain(round, 4000);
    for (int page : *said) acknowledged.push_back(keys[page]);

    DiskTier::Options options{bench.worker(), folder.path(),
                              uint64_t{64} << 20};
    options.clock = &bench.clock();
    options.sync = DiskSync::kNever;
    options.slots_per_segment = 100;
    auto tier = DiskTier::Create(std::move(options));
    ASSERT_TRUE(tier.ok()) << tier.status();
    for (const TierKey& key : acknowledged) {
      const absl::Status served = bench.Fetch(**tier, key);
      ASSERT_TRUE(served.ok()) << served;
    }
    // Others may have got there; Fetch CHECKs that no page is wrong.
    for (int i = 0; i < 4000; i += 7) {
      static_cast<void>(bench.Fetch(**tier, keys[i]));
    }
  }
  EXPECT_GT(acknowledged.size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Io, DiskTierKillTest,
                         testing::Values("uring", "threads"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace penstock
