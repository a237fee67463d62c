#include "tools/simulator/sim_network.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "tools/simulator/sim_peers.h"
#include "tools/simulator/sim_transport.h"

namespace penstock {

void SimNode::Handle(std::function<void()> event) {
  if (host != nullptr) {
    host->Handle(std::move(event));
  } else {
    Run(event);
  }
}

void SimNode::Run(absl::FunctionRef<void()> event) {
  if (host != nullptr) {
    host->Run(event);
  } else {
    event();
    if (alive) wake();
  }
}

SimNetwork::SimNetwork(const Clock* clock, Timers* timers,
                       const BlockHasher* hasher, KvLayout layout,
                       absl::Duration latency)
    : clock_(clock),
      timers_(timers),
      hasher_(hasher),
      layout_(layout),
      latency_(latency) {}

SimNetwork::~SimNetwork() = default;

void SimNetwork::At(Instant when, std::function<void()> event) {
  timers_->Schedule(when, std::move(event));
}

SimNode& SimNetwork::NodeOf(const std::string& name) {
  SimNode& node = nodes_[name];
  if (node.name.empty()) node.name = name;
  return node;
}

SimNode* SimNetwork::Living(const WorkerKey& key) {
  auto it = nodes_.find(key.name);
  return it != nodes_.end() && it->second.alive && it->second.key == key
             ? &it->second
             : nullptr;
}

std::unique_ptr<PeerNetwork> SimNetwork::MakePeers(const WorkerKey& key) {
  return std::make_unique<SimPeers>(this, key);
}

std::unique_ptr<KvTransport> SimNetwork::MakeTransport(
    const WorkerKey& key, const SimTransportOptions& options, Arena arena,
    const Clock* clock, Timers* timers) {
  return std::make_unique<SimTransport>(this, key, options, arena, clock,
                                        timers);
}

void SimNetwork::Attach(Host host) {
  SimNode& node = NodeOf(host.key.name);
  CHECK(!node.alive) << node.name << " is there already";
  node.alive = true;
  ++node.life;
  node.key = std::move(host.key);
  node.arena = host.arena;
  node.listener = host.listener;
  node.wake = std::move(host.wake);
  node.on_write = std::move(host.on_write);
  node.host = host.host;
  node.machine = std::move(host.machine);
  node.process = std::move(host.process);
}

void SimNetwork::Kill(const std::string& name) {
  SimNode& node = NodeOf(name);
  if (!node.alive) return;
  node.alive = false;
  const auto streams = streams_;  // dying ones are forgotten
  for (const auto& [id, stream] : streams) {
    for (SimStream::Side side : {SimStream::kClient, SimStream::kServer}) {
      const SimStream::End& end = stream->ends_[side];
      if (end.node == &node && end.life == node.life) stream->Die(side);
    }
  }
  for (auto& [kind, transport] : std::exchange(node.transports, {})) {
    transport->Die();
  }
  node.peers = nullptr;
}

void SimNetwork::SpoilPage(const WorkerKey& at, TransportKind kind,
                           TransferId transfer, BlockRef block) {
  SimNode* node = Living(at);
  if (node == nullptr || !node->transports.contains(kind)) return;
  node->transports.at(kind)->Spoil(transfer, block);
}

bool SimNetwork::MayLand(const PageInFlight& page) {
  SimNode* node = Living(page.to);
  if (node == nullptr || page.validated) return false;
  auto transport = node->transports.find(page.kind);
  return transport != node->transports.end() &&
         transport->second->Open(page.transfer);
}

std::shared_ptr<SimStream> SimNetwork::Open(
    const std::string& from, const std::string& to,
    std::unique_ptr<SimStreamHandler> handler, SimStream::Accept accept,
    SimStream::Kind kind) {
  const uint64_t id = next_stream_++;
  std::shared_ptr<SimStream> stream(
      new SimStream(this, id, kind, std::move(accept)));
  SimNode& client = NodeOf(from);
  CHECK(client.alive) << from << " opens a stream";
  stream->ends_[SimStream::kClient].node = &client;
  stream->ends_[SimStream::kClient].life = client.life;
  stream->ends_[SimStream::kClient].handler = std::move(handler);
  stream->ends_[SimStream::kServer].node = &NodeOf(to);
  streams_.emplace(id, stream);
  if (!paths_.empty() || stream->ends_[SimStream::kServer].node->frozen()) {
    stream->Refresh();
  }
  return stream;
}

void SimNetwork::Refresh() {
  const auto streams = streams_;  // some may be forgotten
  for (const auto& [id, stream] : streams) stream->Refresh();
}

Instant SimNetwork::Arrival(const SimNode& from, const SimNode& to) const {
  absl::Duration time = latency_;
  if (!paths_.empty()) time += paths_.Delay(from.name, to.name);
  return Now() + time;
}

Instant SimNetwork::PageArrivalTime(SimNode& from, SimNode& to,
                                    uint64_t bytes) {
  const absl::Duration way = Arrival(from, to) - Now();
  if (bandwidth_ <= 0) return Now() + way;
  const double size =
      static_cast<double>(page_bytes_ > 0 ? page_bytes_ : bytes);
  const absl::Duration time =
      absl::Seconds(size * paths_.Slowness(from.name, to.name) / bandwidth_);
  from.egress_free = std::max(from.egress_free, Now()) + time;
  to.ingress_free = std::max(from.egress_free + way, to.ingress_free + time);
  return to.ingress_free;
}

bool SimNetwork::Strikes(FaultKind kind, const SimNode& from,
                         const SimNode& to) {
  if (paths_.empty()) return false;
  const double chance = paths_.Chance(kind, from.name, to.name);
  if (chance <= 0 || random_.Uniform() >= chance) return false;
  ++strikes_[kind];
  return true;
}

void SimNetwork::Bury(std::unique_ptr<SimStreamHandler> handler) {
  if (handler == nullptr) return;
  if (dead_.empty()) {
    // By then whoever died is gone for good.
    At(Now() + absl::Nanoseconds(1), [this] { dead_.clear(); });
  }
  dead_.push_back(std::move(handler));
}

}  // namespace penstock
