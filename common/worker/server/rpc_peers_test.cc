#include "common/worker/server/rpc_peers.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/env/real/monotonic_clock.h"
#include "common/rpc/server.h"
#include "common/runtime/loop_thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

constexpr std::chrono::seconds kPatience(30);

// What was heard, as lines. Thread-safe.
class Journal {
 public:
  void Add(std::string line) {
    std::lock_guard<std::mutex> lock(mutex_);
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }

  // All lines once there are `count` of them, or what there was in the end.
  std::vector<std::string> Wait(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return lines_.size() >= count; });
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

std::string NameOf(const WorkerKey& peer) {
  return absl::StrCat(peer.name, "#", peer.incarnation.value());
}

class Listener : public PeerListener {
 public:
  explicit Listener(Journal* journal) : journal_(journal) {}
  void OnPeerReady(const WorkerKey& peer) override {
    journal_->Add(absl::StrCat("ready ", NameOf(peer)));
  }
  void OnPeerMessage(const WorkerKey& peer, HandoffMessage message) override {
    journal_->Add(absl::StrCat(MessageName(message), " ",
                               TransferOf(message).request.value(), " from ",
                               NameOf(peer)));
  }
  void OnPeerLost(const WorkerKey& peer, const absl::Status&) override {
    journal_->Add(absl::StrCat("lost ", NameOf(peer)));
  }
  void OnDialFailed(const PeerAddress& address,
                    const absl::Status& why) override {
    journal_->Add(absl::StrCat("failed ", address.worker, ": ",
                               absl::StatusCodeToString(why.code())));
  }

 private:
  Journal* const journal_;
};

// A worker's control plane: a loop, a server and peers.
class Node {
 public:
  Node(const std::string& name, uint64_t incarnation,
       const std::string& listen = "127.0.0.1:0")
      : loop_(clock_, {.name = "node"}),
        listener_(&journal),
        key_{name, Incarnation(incarnation)},
        peers_(std::make_unique<RpcPeers>(key_, loop_.inbox())) {
    peers_->set_listener(&listener_);
    loop_.Start(nullptr);
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(MakeHandoffService(
        [this](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
          return peers_->Accept(std::move(stream));
        },
        loop_.inbox()));
    auto server = RpcServer::Start({.address = listen}, std::move(services));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Node() {
    server_->Shutdown(absl::ZeroDuration());
    loop_.RunAndWait([this] { peers_ = nullptr; });
    loop_.Stop();
  }

  PeerAddress Address() const { return {key_.name, server_->address()}; }
  const WorkerKey& key() const { return key_; }

  void Dial(const PeerAddress& address) {
    loop_.RunAndWait([&] { peers_->Dial(address); });
  }
  void Send(const WorkerKey& peer, HandoffMessage message) {
    loop_.RunAndWait([&] { peers_->Send(peer, std::move(message)); });
  }

  Journal journal;

 private:
  MonotonicClock clock_;
  LoopThread loop_;
  Listener listener_;
  const WorkerKey key_;
  std::unique_ptr<RpcPeers> peers_;
  std::unique_ptr<RpcServer> server_;
};

TransferId Transfer(uint64_t request) {
  return {RequestId(request), AttemptId(1)};
}

Offer OfferFor(uint64_t request) {
  Offer offer;
  offer.transfer = Transfer(request);
  return offer;
}

TEST(RpcPeersTest, DialLearnsTheIncarnationAndMessagesKeepTheirOrder) {
  Node prefill("prefill-0", 1);
  Node decode("decode-0", 2);
  prefill.Dial(decode.Address());
  ASSERT_THAT(prefill.journal.Wait(1), ElementsAre("ready decode-0#2"));
  for (uint64_t i = 1; i <= 20; ++i) {
    prefill.Send(decode.key(), OfferFor(i));
  }
  const std::vector<std::string> heard = decode.journal.Wait(20);
  ASSERT_EQ(heard.size(), 20u);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(heard[i], absl::StrCat("Offer ", i + 1, " from prefill-0#1"));
  }
  // The way back is the same stream.
  decode.Send(prefill.key(), CommitAck{Transfer(7)});
  EXPECT_THAT(prefill.journal.Wait(2),
              ElementsAre("ready decode-0#2", "CommitAck 7 from decode-0#2"));
  // A stream that is there is used again, and every Dial is answered.
  prefill.Dial(decode.Address());
  EXPECT_EQ(prefill.journal.Wait(3).back(), "ready decode-0#2");
}

TEST(RpcPeersTest, EveryDialIsAnsweredAlsoWhenNobodyIsThere) {
  Node prefill("prefill-0", 1);
  const PeerAddress nobody{"decode-0", "127.0.0.1:1"};
  prefill.Dial(nobody);
  prefill.Dial(nobody);
  EXPECT_THAT(prefill.journal.Wait(2),
              ElementsAre("failed decode-0: UNAVAILABLE",
                          "failed decode-0: UNAVAILABLE"));
}

TEST(RpcPeersTest, AnotherWorkerAtTheAddressIsAFailedDial) {
  Node prefill("prefill-0", 1);
  Node decode("decode-1", 2);
  prefill.Dial({"decode-0", decode.Address().control});
  EXPECT_THAT(prefill.journal.Wait(1),
              ElementsAre("failed decode-0: FAILED_PRECONDITION"));
}

TEST(RpcPeersTest, TwoWorkersOfOneNameDoNotPair) {
  Node one("twin", 1);
  Node other("twin", 2);
  one.Dial(other.Address());
  EXPECT_EQ(one.journal.Wait(1).size(), 1u);
  EXPECT_THAT(one.journal.Wait(1)[0], testing::StartsWith("failed twin"));
}

TEST(RpcPeersTest, ARestartAtTheSameAddressIsLostAndThenAnotherPeer) {
  Node prefill("prefill-0", 1);
  auto decode = std::make_unique<Node>("decode-0", 2);
  const PeerAddress address = decode->Address();
  prefill.Dial(address);
  ASSERT_THAT(prefill.journal.Wait(1), ElementsAre("ready decode-0#2"));
  decode = nullptr;
  ASSERT_EQ(prefill.journal.Wait(2).back(), "lost decode-0#2");
  decode = std::make_unique<Node>("decode-0", 3, address.control);
  // At once: nothing of the old connection makes the new one wait.
  prefill.Dial(address);
  EXPECT_EQ(prefill.journal.Wait(3).back(), "ready decode-0#3");
  // What was meant for the old life goes nowhere.
  prefill.Send({"decode-0", Incarnation(2)}, OfferFor(1));
  prefill.Send({"decode-0", Incarnation(3)}, OfferFor(2));
  EXPECT_THAT(decode->journal.Wait(1), ElementsAre("Offer 2 from prefill-0#1"));
}

// A peer that is spoken for by hand.
class RawPeer : public StreamHandler {
 public:
  explicit RawPeer(Journal* journal) : journal_(journal) {}
  void OnMessage(std::string) override {}
  void OnClosed(const absl::Status& status) override {
    journal_->Add(absl::StatusCodeToString(status.code()));
  }

 private:
  Journal* const journal_;
};

class RawPeerTest : public testing::Test {
 protected:
  RawPeerTest() : loop_(clock_, {.name = "raw"}), decode_("decode-0", 2) {
    loop_.Start(nullptr);
  }
  ~RawPeerTest() override { loop_.Stop(); }

  std::shared_ptr<Stream> Open() {
    channel_ = RpcChannel::Open(decode_.Address().control);
    return channel_->Start(kPairMethod, std::make_unique<RawPeer>(&ended_),
                           loop_.inbox());
  }

  static std::string Hello(uint64_t sequence, uint64_t incarnation) {
    return EncodeHandoffFrame(
        {sequence, HandoffHello{{"prefill-0", Incarnation(incarnation)}}});
  }
  static std::string OfferOf(uint64_t sequence, uint64_t request) {
    return EncodeHandoffFrame({sequence, HandoffMessage(OfferFor(request))});
  }

  MonotonicClock clock_;
  LoopThread loop_;
  Journal ended_;
  Node decode_;
  std::unique_ptr<RpcChannel> channel_;
};

TEST_F(RawPeerTest, ARepeatedFrameIsSkippedAndAGapEndsTheStream) {
  auto stream = Open();
  stream->Send(Hello(1, 9));
  stream->Send(OfferOf(2, 1));
  stream->Send(OfferOf(2, 1));
  stream->Send(OfferOf(3, 2));
  stream->Send(OfferOf(5, 3));
  EXPECT_THAT(ended_.Wait(1), ElementsAre("DATA_LOSS"));
  EXPECT_THAT(decode_.journal.Wait(3),
              ElementsAre("Offer 1 from prefill-0#9",
                          "Offer 2 from prefill-0#9", "lost prefill-0#9"));
}

TEST_F(RawPeerTest, AMessageBeforeTheHelloEndsTheStream) {
  auto stream = Open();
  stream->Send(OfferOf(1, 1));
  EXPECT_THAT(ended_.Wait(1), ElementsAre("FAILED_PRECONDITION"));
}

TEST_F(RawPeerTest, AFrameThatIsNoneEndsTheStream) {
  auto stream = Open();
  stream->Send(Hello(1, 9));
  stream->Send("nonsense");
  EXPECT_THAT(ended_.Wait(1), ElementsAre("INVALID_ARGUMENT"));
  EXPECT_THAT(decode_.journal.Wait(1), ElementsAre("lost prefill-0#9"));
}

TEST_F(RawPeerTest, ANewLifeOfAPeerReplacesTheOld) {
  auto old = Open();
  old->Send(Hello(1, 9));
  old->Send(OfferOf(2, 1));
  ASSERT_THAT(decode_.journal.Wait(1), ElementsAre("Offer 1 from prefill-0#9"));
  auto fresh = Open();
  fresh->Send(Hello(1, 10));
  fresh->Send(OfferOf(2, 2));
  EXPECT_THAT(decode_.journal.Wait(3),
              ElementsAre("Offer 1 from prefill-0#9", "lost prefill-0#9",
                          "Offer 2 from prefill-0#10"));
}

}  // namespace
}  // namespace penstock
