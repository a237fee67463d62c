#include "common/worker/core/loopback_peers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// Writes down what each side of the loopback hears.
struct Network : PeerNetwork {
  void Send(const WorkerKey& peer, HandoffMessage message) override {
    heard.push_back(
        absl::StrCat("send ", peer.name, " ", MessageName(message)));
  }
  void Dial(const PeerAddress& address) override {
    heard.push_back(absl::StrCat("dial ", address.worker));
  }
  std::vector<std::string> heard;
};

struct Listener : PeerListener {
  void OnPeerReady(const WorkerKey& peer) override {
    heard.push_back(absl::StrCat("ready ", peer.name));
  }
  void OnPeerMessage(const WorkerKey& peer, HandoffMessage message) override {
    heard.push_back(absl::StrCat(peer.name, " says ", MessageName(message)));
    if (answer != nullptr) std::exchange(answer, nullptr)->Send(self, Renew{});
  }
  void OnPeerLost(const WorkerKey& peer, const absl::Status&) override {
    heard.push_back(absl::StrCat("lost ", peer.name));
  }
  void OnDialFailed(const PeerAddress& address, const absl::Status&) override {
    heard.push_back(absl::StrCat("no ", address.worker));
  }
  const WorkerKey self{"me", Incarnation(1)};
  LoopbackPeers* answer = nullptr;  // sent to from inside the next message
  std::vector<std::string> heard;
};

using Heard = std::vector<std::string>;

TEST(LoopbackPeersTest, WhatGoesToItselfComesBackInOrder) {
  Network network;
  Listener listener;
  LoopbackPeers peers(listener.self, &network);
  EXPECT_TRUE(peers.empty());
  EXPECT_FALSE(peers.Deliver(listener));
  peers.Dial({"me", "anywhere"});
  peers.Send(listener.self, Offer{});
  peers.Send(listener.self, Abort{});
  EXPECT_FALSE(peers.empty());
  EXPECT_TRUE(listener.heard.empty());
  EXPECT_TRUE(peers.Deliver(listener));
  EXPECT_EQ(listener.heard,
            (Heard{"ready me", "me says Offer", "me says Abort"}));
  EXPECT_TRUE(peers.empty());
  EXPECT_FALSE(peers.Deliver(listener));
  EXPECT_TRUE(network.heard.empty());
}

TEST(LoopbackPeersTest, AnythingElseGoesToTheNetwork) {
  Network network;
  Listener listener;
  LoopbackPeers peers(listener.self, &network);
  peers.Dial({"other", "there"});
  peers.Send({"other", Incarnation(1)}, Offer{});
  // An earlier life of the same name is somebody else.
  peers.Send({"me", Incarnation(0)}, Abort{});
  EXPECT_EQ(network.heard,
            (Heard{"dial other", "send other Offer", "send me Abort"}));
  EXPECT_FALSE(peers.Deliver(listener));
  EXPECT_TRUE(listener.heard.empty());
}

TEST(LoopbackPeersTest, WithoutANetworkADialFailsAndAMessageIsLost) {
  Listener listener;
  LoopbackPeers peers(listener.self, nullptr);
  peers.Dial({"other", "there"});
  peers.Send({"other", Incarnation(1)}, Offer{});
  EXPECT_TRUE(peers.Deliver(listener));
  EXPECT_EQ(listener.heard, Heard{"no other"});
}

// What is sent from inside a delivery waits for the next one.
TEST(LoopbackPeersTest, AnAnswerComesWithTheNextDelivery) {
  Listener listener;
  LoopbackPeers peers(listener.self, nullptr);
  listener.answer = &peers;
  peers.Send(listener.self, Offer{});
  EXPECT_TRUE(peers.Deliver(listener));
  EXPECT_EQ(listener.heard, Heard{"me says Offer"});
  EXPECT_FALSE(peers.empty());
  EXPECT_TRUE(peers.Deliver(listener));
  EXPECT_EQ(listener.heard, (Heard{"me says Offer", "me says Renew"}));
}

}  // namespace
}  // namespace penstock
