#include "common/runtime/cores/shared_core_ledger.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

class SharedCoreLedgerTest : public testing::Test {
 protected:
  SharedCoreLedgerTest() { std::filesystem::remove(path_); }
  ~SharedCoreLedgerTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<SharedCoreLedger> Open() {
    auto ledger = SharedCoreLedger::Open(path_);
    EXPECT_TRUE(ledger.ok()) << ledger.status();
    return ledger.ok() ? std::move(*ledger) : nullptr;
  }

  const std::string path_ =
      testing::TempDir() + "core_ledger_" + std::to_string(getpid());
  const Instant now_ = Instant::FromNanos(5'000'000'000);
};

TEST_F(SharedCoreLedgerTest, OthersSeeAClaimUntilItIsReleased) {
  auto one = Open(), two = Open(), three = Open();
  one->Claim(CoreUse::kPrompts, now_);
  two->Claim(CoreUse::kAnswers, now_);
  EXPECT_EQ(three->Others(now_).prompts, 1);
  EXPECT_EQ(three->Others(now_).answers, 1);
  EXPECT_EQ(one->Others(now_).prompts, 0);
  one->Claim(CoreUse::kAnswers, now_);
  EXPECT_EQ(three->Others(now_).answers, 2);
  one->Release();
  two.reset();
  EXPECT_EQ(three->Others(now_).prompts, 0);
  EXPECT_EQ(three->Others(now_).answers, 0);
}

TEST_F(SharedCoreLedgerTest, AClaimEndsByItself) {
  auto one = Open(), two = Open();
  one->Claim(CoreUse::kPrompts, now_);
  const Instant end = now_ + CoreLedger::kLease;
  EXPECT_EQ(two->Others(end + -absl::Nanoseconds(1)).prompts, 1);
  EXPECT_EQ(two->Others(end).prompts, 0);
}

// Such as what another boot of the machine has left.
TEST_F(SharedCoreLedgerTest, ClaimsFromFarAheadAreNone) {
  auto one = Open(), two = Open();
  one->Claim(CoreUse::kPrompts, now_ + absl::Hours(1));
  EXPECT_EQ(two->Others(now_).prompts, 0);
}

TEST_F(SharedCoreLedgerTest, AKilledProcessLosesClaimAndSlot) {
  auto here = Open();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto ledger = SharedCoreLedger::Open(path_);
    if (!ledger.ok()) _exit(1);
    (*ledger)->Claim(CoreUse::kPrompts, now_);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(here->Others(now_).prompts, 1);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(here->Others(now_ + CoreLedger::kLease).prompts, 0);
  // Whoever comes next takes its place.
  auto next = Open();
  EXPECT_EQ(here->Others(now_).prompts, 0);
}

TEST_F(SharedCoreLedgerTest, FullUntilSomebodyGoes) {
  std::vector<std::unique_ptr<SharedCoreLedger>> all;
  for (int i = 0; i < SharedCoreLedger::kSlots; ++i) all.push_back(Open());
  EXPECT_EQ(SharedCoreLedger::Open(path_).status().code(),
            absl::StatusCode::kResourceExhausted);
  all[7].reset();
  EXPECT_NE(Open(), nullptr);
}

TEST_F(SharedCoreLedgerTest, RefusesWhatIsNoLedger) {
  std::ofstream(path_) << "a letter";
  EXPECT_EQ(SharedCoreLedger::Open(path_).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharedCoreLedger::Open("/dev/null").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharedCoreLedger::Open(path_ + "/no/such").status().code(),
            absl::StatusCode::kFailedPrecondition);
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "a letter");
}

}  // namespace
}  // namespace penstock
