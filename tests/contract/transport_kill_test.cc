// What is left when a worker's process is killed, with no chance to say so, and
// what goes on while one is stopped.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/transfer/page_header.h"
#include "common/transfer/socket/unique_fd.h"
#include "gtest/gtest.h"
#include "tests/contract/transport_worker.h"

namespace penstock {
namespace {

using absl::StatusCode;

constexpr TransferId kTransfer{RequestId(1), AttemptId(1)};
constexpr uint32_t kGeneration = 7;

// A transport_peer, killed at the latest with this object.
class Child {
 public:
  explicit Child(std::vector<std::string> arguments) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    output_ = UniqueFd(ends[0]);
    UniqueFd theirs(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
    arguments.insert(arguments.begin(), PENSTOCK_TRANSPORT_PEER);
    std::vector<char*> raw;
    for (std::string& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    CHECK(posix_spawn(&pid_, raw[0], &actions, nullptr, raw.data(), environ) ==
          0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() { Kill(); }

  // Empty: it has died.
  std::string ReadLine() {
    std::string line;
    char c;
    while (read(output_.get(), &c, 1) == 1 && c != '\n') line += c;
    return line;
  }

  // Returns when every thread of it stands still.
  void Stop() {
    kill(pid_, SIGSTOP);
    int status = 0;
    CHECK(waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status));
  }
  void Continue() { kill(pid_, SIGCONT); }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
};

class TransportKillTest : public testing::TestWithParam<TransportKind> {
 protected:
  std::string Kind() const { return TransportName(GetParam()); }

  std::unique_ptr<TransportWorker> Make(
      const std::string& name, uint64_t incarnation,
      absl::Duration silence = absl::Seconds(60)) {
    TransportWorker::Options options;
    options.kind = GetParam();
    options.name = name;
    options.incarnation = Incarnation(incarnation);
    options.silence = silence;
    auto worker = TransportWorker::Create(options);
    CHECK(worker.ok()) << worker.status();
    return *std::move(worker);
  }

  // Where a child that receives says it is.
  static TransportAddress AddressOf(Child& child) {
    TransportAddress address{GetParam(), "", Incarnation(22), 0};
    std::stringstream(child.ReadLine()) >> address.address >>
        address.access_key;
    CHECK(!address.address.empty());
    return address;
  }

  static std::string Listen() {
    return GetParam() == TransportKind::kShm
               ? "penstock-kill-test-" + std::to_string(getpid())
               : "127.0.0.1:0";
  }

  // Posts all 16 blocks and waits for the end of it.
  static absl::Status Send(TransportWorker& source, absl::Duration limit) {
    std::vector<PageWrite> writes;
    for (BlockIndex i = 0; i < 16; ++i) {
      writes.push_back({i, {i, kGeneration}, {0, SmallLayout().layers}});
    }
    PostId post =
        source.transport().Post({"decode-0", Incarnation(22)}, kTransfer,
                                writes, source.clock().Now() + limit);
    auto done = source.AwaitCompletion();
    CHECK(done.ok()) << done.status();
    EXPECT_EQ(done->post, post);
    return done->status;
  }
};
INSTANTIATE_TEST_SUITE_P(Sockets, TransportKillTest,
                         testing::Values(TransportKind::kShm,
                                         TransportKind::kTcp),
                         [](const auto& info) {
                           return std::string(TransportName(info.param));
                         });

std::set<std::string> NamedMemory() {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(file.path());
  }
  return names;
}

bool SocketExists(const std::string& name) {
  std::ifstream table("/proc/net/unix");
  std::stringstream text;
  text << table.rdbuf();
  return text.str().find("@" + name) != std::string::npos;
}

TEST_P(TransportKillTest, AKilledDestinationFailsEveryPost) {
  const std::string listen = Listen();
  std::set<std::string> before = NamedMemory();
  Child child({"hold", Kind(), listen});
  TransportAddress address = AddressOf(child);
  auto source = Make("prefill-0", 11);
  WorkerKey peer{"decode-0", Incarnation(22)};
  ASSERT_TRUE(source->transport().Connect(peer, address).ok());
  std::set<PostId> posts;
  for (BlockIndex i = 0; i < 16; ++i) {
    posts.insert(source->transport().Post(
        peer, kTransfer, {{i, {i, kGeneration}, {0, SmallLayout().layers}}},
        Instant::Infinite()));
  }
  ASSERT_EQ(child.ReadLine(), "held");
  EXPECT_EQ(source->transport().PollCompletion(), std::nullopt);

  child.Kill();
  while (!posts.empty()) {
    auto done = source->AwaitCompletion();
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->status.code(), StatusCode::kUnavailable) << done->status;
    EXPECT_EQ(posts.erase(done->post), 1u);
  }
  // Nothing is left, and a post to the dead one fails, too.
  EXPECT_EQ(NamedMemory(), before);
  EXPECT_FALSE(SocketExists(listen));
  source->transport().Post(peer, kTransfer, {}, Instant::Infinite());
  source->transport().Post(peer, kTransfer, {{0, {0, kGeneration}, {0, 1}}},
                           Instant::Infinite());
  EXPECT_TRUE(source->AwaitCompletion()->status.ok());
  EXPECT_EQ(source->AwaitCompletion()->status.code(), StatusCode::kUnavailable);
}

TEST_P(TransportKillTest, AKilledSourceLeavesAFencedDestination) {
  auto destination = Make("decode-0", 22);
  std::vector<BlockRef> blocks;
  for (BlockIndex i = 0; i < 16; ++i) blocks.push_back({i, kGeneration});
  destination->transport().PrepareReceive(kTransfer, blocks);
  TransportAddress address = destination->transport().Describe();
  const std::vector<std::string> arguments = {
      "send", Kind(), address.address, std::to_string(address.access_key)};

  for (int life = 0; life < 2; ++life) {
    Child child(arguments);
    for (int i = 0; i < 100; ++i) {
      auto arrival = destination->AwaitArrival();
      ASSERT_TRUE(arrival.ok()) << arrival.status();
      EXPECT_TRUE(arrival->status.ok()) << arrival->status;
    }
    child.Kill();
  }
  // Whatever its last bytes were, what counts was whole.
  while (auto arrival = destination->transport().PollArrival()) {
    EXPECT_TRUE(arrival->status.ok()) << arrival->status;
  }
  EXPECT_TRUE(destination->AwaitFence(kTransfer));
}

// Stopped, not dead: its connections stay open and nothing moves.
TEST_P(TransportKillTest, PostsToAStoppedPeerEndByTheirDeadline) {
  Child child({"receive", Kind(), Listen()});
  TransportAddress address = AddressOf(child);
  auto source = Make("prefill-0", 11);
  WorkerKey peer{"decode-0", Incarnation(22)};
  constexpr absl::Duration kShort = absl::Milliseconds(30);
  constexpr absl::Duration kLong = absl::Seconds(60);

  // Before anybody has said hello ...
  child.Stop();
  ASSERT_TRUE(source->transport().Connect(peer, address).ok());
  EXPECT_EQ(Send(*source, kShort).code(), StatusCode::kDeadlineExceeded);
  child.Continue();
  EXPECT_TRUE(Send(*source, kLong).ok());
  // ... and with a connection that works.
  child.Stop();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Send(*source, kShort).code(), StatusCode::kDeadlineExceeded);
  }
  child.Continue();
  EXPECT_TRUE(Send(*source, kLong).ok());
}

// A connection may stay open for ever though nothing comes of it.
TEST_P(TransportKillTest, ASilentPeerLosesItsConnection) {
  Child child({"receive", Kind(), Listen()});
  TransportAddress address = AddressOf(child);
  auto source = Make("prefill-0", 11, /*silence=*/absl::Milliseconds(10));
  WorkerKey peer{"decode-0", Incarnation(22)};
  ASSERT_TRUE(source->transport().Connect(peer, address).ok());
  EXPECT_TRUE(Send(*source, absl::Seconds(60)).ok());

  child.Stop();
  PostId patient = source->transport().Post(
      peer, kTransfer, {{0, {0, kGeneration}, {0, 1}}}, Instant::Infinite());
  EXPECT_EQ(Send(*source, absl::Milliseconds(30)).code(),
            StatusCode::kDeadlineExceeded);
  auto failed = source->AwaitCompletion();
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->post, patient);
  EXPECT_EQ(failed->status.code(), StatusCode::kUnavailable);

  child.Continue();
  EXPECT_TRUE(Send(*source, absl::Seconds(60)).ok());  // over a new one
}

TEST_P(TransportKillTest, AFenceDoesNotWaitForAStoppedSource) {
  auto destination = Make("decode-0", 22);
  std::vector<BlockRef> blocks;
  for (BlockIndex i = 0; i < 16; ++i) blocks.push_back({i, kGeneration});
  destination->transport().PrepareReceive(kTransfer, blocks);
  TransportAddress address = destination->transport().Describe();
  Child child(
      {"send", Kind(), address.address, std::to_string(address.access_key)});
  ASSERT_TRUE(destination->AwaitArrival().ok());
  child.Stop();
  EXPECT_TRUE(destination->AwaitFence(kTransfer));
  destination->Fill(0, 100);
  std::vector<uint8_t> own(destination->Block(0).begin(),
                           destination->Block(0).end());
  // It goes on sending, to no effect.
  while (destination->transport().PollArrival()) continue;
  child.Continue();
  absl::StatusOr<PageArrival> refused = destination->AwaitArrival();
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(RefusalOf(refused->status), PageRefusal::kNotPrepared);
  EXPECT_EQ(std::vector<uint8_t>(destination->Block(0).begin(),
                                 destination->Block(0).end()),
            own);
}

}  // namespace
}  // namespace penstock
