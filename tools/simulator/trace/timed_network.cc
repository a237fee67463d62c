#include "tools/simulator/trace/timed_network.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace penstock {
namespace {

// What every page holds.
constexpr uint64_t kPageChecksum = 1;

template <typename T>
std::optional<T> Pop(std::deque<T>& queue) {
  if (queue.empty()) return std::nullopt;
  std::optional<T> front = std::move(queue.front());
  queue.pop_front();
  return front;
}

}  // namespace

TimedNetwork::Host& TimedNetwork::HostOf(const std::string& name) {
  auto it = hosts_.find(name);
  CHECK(it != hosts_.end()) << "no worker " << name;
  return it->second;
}

class TimedPeers : public PeerNetwork {
 public:
  TimedPeers(TimedNetwork* network, std::string self)
      : network_(network), self_(std::move(self)) {}

  void Dial(const PeerAddress& address) override {
    TimedNetwork::Host* me = &network_->HostOf(self_);
    TimedNetwork::Host* peer = &network_->HostOf(address.worker);
    network_->After(network_->latency_, [me, peer] {
      me->listener->OnPeerReady(peer->key);
      me->wake();
    });
  }

  void Send(const WorkerKey& peer, HandoffMessage message) override {
    TimedNetwork::Host* me = &network_->HostOf(self_);
    TimedNetwork::Host* to = &network_->HostOf(peer.name);
    // A timer's callback is copyable, a message is better moved.
    auto sent = std::make_shared<HandoffMessage>(std::move(message));
    network_->After(network_->latency_, [me, to, sent] {
      to->listener->OnPeerMessage(me->key, std::move(*sent));
      to->wake();
    });
  }

 private:
  TimedNetwork* network_;
  std::string self_;
};

class TimedTransport : public KvTransport {
 public:
  TimedTransport(TimedNetwork* network, WorkerKey self)
      : network_(network), self_(std::move(self)) {
    caps_.kind = TransportKind::kTcp;
    caps_.receiver_validates = true;
    network_->HostOf(self_.name).transport = this;
  }

  const TransportCaps& caps() const override { return caps_; }
  TransportAddress Describe() const override {
    return {caps_.kind, self_.name, self_.incarnation, 0};
  }
  absl::Status Connect(const WorkerKey&, const TransportAddress&) override {
    return absl::OkStatus();
  }
  void PrepareReceive(TransferId, const std::vector<BlockRef>&) override {}
  bool Revoke(TransferId) override { return true; }
  void Cancel(PostId) override {}
  void DropPeer(const WorkerKey&) override {}

  PostId Post(const WorkerKey& peer, TransferId transfer,
              std::vector<PageWrite> writes, Instant) override {
    const PostId post = next_post_++;
    TimedNetwork::Host* to = &network_->HostOf(peer.name);
    const uint64_t bytes = writes.size() * network_->layout_.block_bytes();
    network_->bytes_moved_ += bytes;
    link_free_at_ = std::max(link_free_at_, network_->clock_->Now()) +
                    network_->cost_->Transfer(bytes);
    auto sent = std::make_shared<std::vector<PageWrite>>(std::move(writes));
    network_->timers_->Schedule(link_free_at_, [=, this] {
      to->transport->Land(transfer, *sent);
      to->wake();
      CompleteLater({post, transfer, absl::OkStatus(), bytes,
                     std::vector<uint64_t>(sent->size(), kPageChecksum)});
    });
    return post;
  }

  std::optional<PostCompletion> PollCompletion() override {
    return Pop(completions_);
  }
  std::optional<PageArrival> PollArrival() override { return Pop(arrivals_); }

 private:
  void Land(TransferId transfer, const std::vector<PageWrite>& writes) {
    for (const PageWrite& write : writes) {
      PageArrival arrival;
      arrival.transfer = transfer;
      arrival.block = write.destination;
      arrival.layers = write.layers;
      arrival.bytes = network_->layout_.block_bytes();
      arrival.landed = true;
      arrival.checksum = kPageChecksum;
      arrivals_.push_back(std::move(arrival));
    }
  }

  void CompleteLater(PostCompletion completion) {
    auto done = std::make_shared<PostCompletion>(std::move(completion));
    network_->After(network_->latency_, [this, done] {
      completions_.push_back(std::move(*done));
      network_->HostOf(self_.name).wake();
    });
  }

  TimedNetwork* network_;
  WorkerKey self_;
  TransportCaps caps_;
  PostId next_post_ = 1;
  Instant link_free_at_;
  std::deque<PostCompletion> completions_;
  std::deque<PageArrival> arrivals_;
};

std::unique_ptr<PeerNetwork> TimedNetwork::MakePeers(const WorkerKey& key) {
  return std::make_unique<TimedPeers>(this, key.name);
}

std::unique_ptr<KvTransport> TimedNetwork::MakeTransport(const WorkerKey& key) {
  hosts_[key.name].key = key;
  return std::make_unique<TimedTransport>(this, key);
}

void TimedNetwork::Attach(const WorkerKey& key, PeerListener* listener,
                          std::function<void()> wake) {
  Host& host = hosts_[key.name];
  host.key = key;
  host.listener = listener;
  host.wake = std::move(wake);
}

}  // namespace penstock
