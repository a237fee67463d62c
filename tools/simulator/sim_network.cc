#include "tools/simulator/sim_network.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {

SimNetwork::Host* SimNetwork::Find(const std::string& name) {
  auto it = hosts_.find(name);
  return it == hosts_.end() ? nullptr : &it->second;
}

SimNetwork::Host* SimNetwork::Find(const WorkerKey& key) {
  Host* host = Find(key.name);
  return host != nullptr && host->key == key ? host : nullptr;
}

void SimNetwork::After(absl::Duration delay, std::function<void()> then) {
  timers_->Schedule(clock_->Now() + delay, std::move(then));
}

void SimNetwork::Wake(const WorkerKey& key) {
  if (Host* host = Find(key)) host->wake();
}

void SimNetwork::Attach(Host host) {
  std::string name = host.key.name;
  hosts_[name] = std::move(host);
}

class SimPeers : public PeerNetwork {
 public:
  SimPeers(SimNetwork* network, std::string self)
      : network_(network), self_(std::move(self)) {}

  void Dial(const PeerAddress& address) override {
    SimNetwork::Host* me = network_->Find(self_);
    CHECK(me != nullptr);
    network_->After(network_->latency_,
                    [network = network_, from = me->key, address] {
                      SimNetwork::Host* me = network->Find(from);
                      if (me == nullptr) return;
                      SimNetwork::Host* peer = network->Find(address.worker);
                      if (peer == nullptr) {
                        me->listener->OnDialFailed(
                            address, absl::UnavailableError("no such host"));
                      } else {
                        network->connected_.insert({from.name, peer->key.name});
                        network->connected_.insert({peer->key.name, from.name});
                        me->listener->OnPeerReady(peer->key);
                      }
                      me->wake();
                    });
  }

  void Send(const WorkerKey& peer, HandoffMessage message) override {
    SimNetwork::Host* me = network_->Find(self_);
    if (me == nullptr) return;
    if (network_->filter && !network_->filter(me->key, peer, message)) return;
    network_->After(network_->latency_, [network = network_, from = me->key,
                                         peer, message] {
      SimNetwork::Host* to = network->Find(peer);
      if (to == nullptr || network->Find(from) == nullptr) return;
      if (network->trace) {
        TransferId id = TransferOf(message);
        network->trace(
            absl::StrCat(from.name, " > ", peer.name, " ", MessageName(message),
                         " ", id.request.value(), "/", id.attempt.value()));
      }
      to->listener->OnPeerMessage(from, message);
      to->wake();
    });
  }

 private:
  SimNetwork* network_;
  std::string self_;
};

// Copies pages between arenas, checking at the destination what real
// transports check.
class SimTransport : public KvTransport {
 public:
  SimTransport(SimNetwork* network, WorkerKey self, TransportKind kind)
      : network_(network), self_(std::move(self)) {
    caps_.kind = kind;
    caps_.receiver_validates = true;
    network_->transports_[{self_.name, kind}] = this;
  }
  ~SimTransport() override {
    auto it = network_->transports_.find({self_.name, caps_.kind});
    if (it != network_->transports_.end() && it->second == this) {
      network_->transports_.erase(it);
    }
  }

  const TransportCaps& caps() const override { return caps_; }
  TransportAddress Describe() const override {
    return {caps_.kind, self_.name, self_.incarnation, 0};
  }
  absl::Status Connect(const WorkerKey& peer,
                       const TransportAddress& address) override {
    return dropped_.contains(peer)
               ? absl::FailedPreconditionError("this incarnation was dropped")
               : absl::OkStatus();
  }
  void PrepareReceive(TransferId transfer,
                      const std::vector<BlockRef>& blocks) override {
    for (BlockRef block : blocks) prepared_.insert({transfer, block});
  }
  bool Revoke(TransferId transfer) override {
    std::erase_if(prepared_,
                  [&](const auto& entry) { return entry.first == transfer; });
    return true;
  }

  PostId Post(const WorkerKey& peer, TransferId transfer,
              std::vector<PageWrite> writes, Instant deadline) override {
    PostId post = next_post_++;
    network_->After(
        network_->latency_, [network = network_, self = self_, peer,
                             kind = caps_.kind, post, transfer, writes] {
          SimTransport* from = network->Living(self, kind);
          if (from == nullptr) return;
          PostCompletion done{post, transfer, absl::OkStatus(), 0, {}};
          if (network->on_post) done.status = network->on_post(self, kind);
          for (const PageWrite& write : writes) {
            if (done.status.ok()) from->Land(peer, transfer, write, done);
          }
          network->Wake(peer);
          network->After(network->latency_, [network, self, kind, done] {
            SimTransport* from = network->Living(self, kind);
            if (from == nullptr) return;
            from->completions_.push_back(done);
            network->Wake(self);
          });
        });
    return post;
  }
  void Cancel(PostId post) override {}
  void DropPeer(const WorkerKey& peer) override { dropped_.insert(peer); }

  std::optional<PostCompletion> PollCompletion() override {
    return Pop(completions_);
  }
  std::optional<PageArrival> PollArrival() override { return Pop(arrivals_); }

 private:
  template <typename T>
  static std::optional<T> Pop(std::deque<T>& queue) {
    if (queue.empty()) return std::nullopt;
    T front = std::move(queue.front());
    queue.pop_front();
    return front;
  }

  absl::Span<uint8_t> Page(const SimNetwork::Host& host, BlockIndex block) {
    Segment s = network_->layout_.Segments(block, {0, 1})[0];
    return host.arena.bytes.subspan(s.offset, s.length);
  }

  void Land(const WorkerKey& peer, TransferId transfer, const PageWrite& write,
            PostCompletion& done) {
    SimNetwork::Host* to = network_->Find(peer);
    auto other = network_->transports_.find({peer.name, caps_.kind});
    if (to == nullptr || other == network_->transports_.end()) {
      done.status = absl::UnavailableError("peer is gone");
      return;
    }
    SimTransport& receiver = *other->second;
    absl::Span<uint8_t> source = Page(*network_->Find(self_), write.source);
    uint64_t announced = network_->hasher_->Checksum(source);
    PageArrival arrival;
    arrival.transfer = transfer;
    arrival.block = write.destination;
    arrival.layers = write.layers;
    arrival.bytes = source.size();
    arrival.began = arrival.ended = network_->clock_->Now();
    if (!receiver.prepared_.contains({transfer, write.destination})) {
      arrival.status = absl::DataLossError("not prepared");
    } else {
      absl::Span<uint8_t> page = Page(*to, write.destination.index);
      std::memcpy(page.data(), source.data(), page.size());
      if (network_->on_page) network_->on_page(transfer, page);
      arrival.landed = true;
      arrival.checksum = network_->hasher_->Checksum(page);
      if (arrival.checksum != announced) {
        arrival.status = absl::DataLossError("bad checksum");
      }
    }
    receiver.arrivals_.push_back(arrival);
    done.status = arrival.status;
    done.bytes += source.size();
    done.checksums.push_back(announced);
  }

  friend class SimNetwork;
  SimNetwork* network_;
  WorkerKey self_;
  TransportCaps caps_;
  PostId next_post_ = 1;
  std::set<std::pair<TransferId, BlockRef>> prepared_;
  std::set<WorkerKey> dropped_;
  std::deque<PostCompletion> completions_;
  std::deque<PageArrival> arrivals_;
};

SimTransport* SimNetwork::Living(const WorkerKey& key, TransportKind kind) {
  auto it = transports_.find({key.name, kind});
  return Find(key) == nullptr || it == transports_.end() ? nullptr : it->second;
}

void SimNetwork::SpoilPage(const WorkerKey& at, TransportKind kind,
                           TransferId transfer, BlockRef block) {
  SimTransport* to = Living(at, kind);
  if (to == nullptr || !to->prepared_.contains({transfer, block})) return;
  absl::Span<uint8_t> page = to->Page(*Find(at), block.index);
  page[0] ^= 1;
  PageArrival arrival;
  arrival.transfer = transfer;
  arrival.block = block;
  arrival.layers = {0, 1};
  arrival.bytes = page.size();
  arrival.landed = true;
  arrival.checksum = hasher_->Checksum(page);
  arrival.began = arrival.ended = clock_->Now();
  arrival.status = absl::DataLossError("bad checksum");
  to->arrivals_.push_back(arrival);
  Wake(at);
}

std::unique_ptr<PeerNetwork> SimNetwork::MakePeers(const std::string& name) {
  return std::make_unique<SimPeers>(this, name);
}

std::unique_ptr<KvTransport> SimNetwork::MakeTransport(const WorkerKey& key,
                                                       TransportKind kind) {
  return std::make_unique<SimTransport>(this, key, kind);
}

void SimNetwork::Kill(const std::string& name) {
  Host* host = Find(name);
  if (host == nullptr) return;
  WorkerKey dead = host->key;
  hosts_.erase(name);
  for (auto& [other, unused] : hosts_) {
    if (!connected_.contains({other, name})) continue;
    After(latency_, [this, other = other, dead] {
      Host* peer = Find(other);
      if (peer == nullptr) return;
      peer->listener->OnPeerLost(dead, absl::UnavailableError("host died"));
      peer->wake();
    });
  }
  std::erase_if(connected_, [&](const Pair& pair) {
    return pair.a == name || pair.b == name;
  });
}

}  // namespace penstock
