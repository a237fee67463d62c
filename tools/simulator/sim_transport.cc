#include "tools/simulator/sim_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/simulator/sim_page.h"

namespace penstock {
namespace {

// How long a page is held back.
absl::Duration Hold(Random& random, int milliseconds) {
  return absl::Microseconds(
      static_cast<int64_t>(1 + random.Below(milliseconds * 1000)));
}

}  // namespace

SimTransport::SimTransport(SimNetwork* network, WorkerKey self,
                           const SimTransportOptions& options, Arena arena,
                           const Clock* clock, Timers* timers)
    : network_(network),
      self_(std::move(self)),
      node_(&network->NodeOf(self_.name)),
      options_(options),
      clock_(clock),
      timers_(timers),
      caps_{options.kind, options.receiver_validates, options.preference},
      pages_(arena, network->layout_),
      ledger_(self_.incarnation) {
  node().transports[options.kind] = this;
}

SimTransport::~SimTransport() { timers_->Cancel(timer_); }

void SimTransport::Die() {
  for (PagePtr& page : std::exchange(held_, {})) ReleaseLate(std::move(page));
}

TransportAddress SimTransport::Describe() const {
  return {caps_.kind, self_.name, self_.incarnation, 0};
}

absl::Status SimTransport::Connect(const WorkerKey& peer,
                                   const TransportAddress& address) {
  if (address.kind != caps_.kind || address.incarnation != peer.incarnation) {
    return absl::FailedPreconditionError("not this peer's address");
  }
  if (dropped_.contains(peer)) {
    return absl::FailedPreconditionError("this incarnation was dropped");
  }
  peers_[peer].address = address;
  return absl::OkStatus();
}

PostId SimTransport::Post(const WorkerKey& peer, TransferId transfer,
                          std::vector<PageWrite> writes, Instant deadline) {
  const PostId id = next_post_++;
  if (network_->on_post) {
    const absl::Status status = network_->on_post(self_, caps_.kind);
    if (!status.ok()) {
      Later(absl::ZeroDuration(), [this, id, transfer, status] {
        completions_.push_back({id, transfer, status, 0, {}});
      });
      return id;
    }
  }
  posts_.Add({id, peer, transfer, std::move(writes), deadline});
  Pump(peer);
  // Whatever completed at once is looked at.
  if (!completions_.empty()) Later(absl::ZeroDuration(), [] {});
  return id;
}

void SimTransport::Cancel(PostId post) {
  posts_.Cancel(post);
  std::vector<PagePtr> held = std::exchange(held_, {});
  for (PagePtr& page : held) {
    if (page->post != post) {
      held_.push_back(std::move(page));
    } else if (options_.receiver_validates) {
      held_.push_back(std::move(page));  // released when its post completes
      posts_.Acked(post, 0, absl::CancelledError("the post was cancelled"));
    } else {
      // The completion waits for it.
      ReleaseLate(std::move(page));
    }
  }
  Collect();
}

void SimTransport::DropPeer(const WorkerKey& peer) {
  dropped_.insert(peer);
  if (auto it = peers_.find(peer); it != peers_.end()) {
    if (it->second.stream != nullptr) {
      it->second.stream->Close(SimStream::kClient,
                               absl::CancelledError("dropped"));
    }
    peers_.erase(it);
  }
  posts_.Fail(peer,
              absl::UnavailableError(absl::StrCat(peer.name, " was dropped")));
  Collect();
}

std::optional<PostCompletion> SimTransport::PollCompletion() {
  if (completions_.empty()) return std::nullopt;
  PostCompletion front = std::move(completions_.front());
  completions_.pop_front();
  return front;
}

void SimTransport::Later(absl::Duration delay, std::function<void()> event) {
  SimNode& self = node();
  network_->At(network_->Now() + delay,
               [&self, life = self.life, event = std::move(event)] {
                 if (self.alive && self.life == life) self.Handle(event);
               });
}

bool SimTransport::Reaches(const Peer& peer) const {
  const SimNode& me = node();
  const SimNode& other = network_->NodeOf(peer.address.address);
  switch (caps_.kind) {
    case TransportKind::kTcp:
      return true;
    case TransportKind::kShm:
      return me.machine == other.machine;
    case TransportKind::kInproc:
      return !me.process.empty() && me.process == other.process;
  }
  return false;
}

void SimTransport::Pump(const WorkerKey& key) {
  auto it = peers_.find(key);
  if (it == peers_.end() || !Reaches(it->second)) {
    posts_.Fail(key, absl::UnavailableError(
                         absl::StrCat(key.name, " cannot be reached")));
  } else {
    while (it->second.in_flight < options_.window) {
      std::optional<PostTable::Write> write = posts_.Next(key);
      if (!write.has_value()) break;
      Send(key, it->second, *write);
    }
  }
  Collect();
}

SimTransport::PagePtr SimTransport::MakePage(const Peer& peer,
                                             const PostTable::Write& write) {
  auto page = std::make_shared<Page>();
  page->source = self_;
  page->destination = {peer.address.address, peer.address.incarnation};
  page->post = write.post;
  for (absl::Span<const uint8_t> piece :
       ReadOnly(pages_.Page(write.page.source, write.page.layers))) {
    page->payload.insert(page->payload.end(), piece.begin(), piece.end());
  }
  PageHeader& header = page->header;
  header.transfer = write.transfer;
  header.destination = peer.address.incarnation;
  header.block = write.page.destination;
  header.layers = write.page.layers;
  header.payload_bytes = page->payload.size();
  header.payload_checksum = network_->hasher_->Checksum(page->payload);
  header.layout = network_->layout_.id();
  page->Enlist(network_->pages_, network_->next_page_++,
               {page->destination, write.transfer, header.block, caps_.kind,
                options_.receiver_validates});
  return page;
}

void SimTransport::Send(const WorkerKey& key, Peer& peer,
                        const PostTable::Write& write) {
  SimNode& from = node();
  SimNode& to = network_->NodeOf(peer.address.address);
  PagePtr page = MakePage(peer, write);
  posts_.SetChecksum(write, page->header.payload_checksum);
  ++peer.in_flight;
  Outstanding& outstanding = outstanding_[write.post];
  outstanding.peer = key;
  ++outstanding.pages;
  if (network_->Strikes(FaultKind::kPostFails, from, to)) {
    Later(absl::ZeroDuration(), [this, post = write.post] {
      OnAck(post, 0, absl::UnavailableError("the write was not posted"));
    });
    return;
  }
  if (!options_.receiver_validates) outstanding.unchecked.push_back(page);
  if (network_->Strikes(FaultKind::kPageCorrupted, from, to)) {
    const uint64_t bit = network_->random_.Below(page->payload.size() * 8);
    page->payload[bit / 8] ^= 1 << (bit % 8);
  }
  if (network_->Strikes(FaultKind::kLateWrite, from, to)) {
    held_.push_back(std::move(page));
    return;
  }
  page->acknowledge = !network_->Strikes(FaultKind::kCompletionLost, from, to);
  if (network_->Strikes(FaultKind::kPageReordered, from, to)) {
    Later(Hold(network_->random_, 20),
          [this, key, page] { Dispatch(key, page); });
    return;
  }
  Dispatch(key, std::move(page));
}

void SimTransport::Dispatch(const WorkerKey& key, PagePtr page) {
  auto it = peers_.find(key);
  if (it == peers_.end() || page->flushed) return;
  Peer& peer = it->second;
  OpenStream(key, peer);
  page->header.sequence = ++peer.last_sequence;
  Put(key, peer, page);
  if (!network_->Strikes(FaultKind::kPageDuplicated, node(),
                         network_->NodeOf(peer.address.address))) {
    return;
  }
  PagePtr twin = page->Twin(network_->next_page_++);
  // As the wire doubles it, or as the source does.
  if (network_->random_.Below(2) == 0) {
    twin->header.sequence = ++peer.last_sequence;
  }
  if (!options_.receiver_validates) {
    outstanding_[page->post].unchecked.push_back(twin);
  }
  Put(key, peer, std::move(twin));
}

void SimTransport::OpenStream(const WorkerKey& key, Peer& peer) {
  if (peer.stream != nullptr || !options_.receiver_validates) return;
  peer.last_sequence = 0;
  peer.stream = network_->Open(
      self_.name, peer.address.address, std::make_unique<Outbound>(this, key),
      [network = network_, to = peer.address.address,
       kind = caps_.kind](std::shared_ptr<SimStream> stream)
          -> std::unique_ptr<SimStreamHandler> {
        SimNode& node = network->NodeOf(to);
        auto transport = node.transports.find(kind);
        if (transport == node.transports.end()) {
          stream->Close(SimStream::kServer,
                        absl::UnavailableError("no such transport"));
          return nullptr;
        }
        return std::make_unique<Inbound>(transport->second, stream);
      },
      caps_.kind == TransportKind::kTcp ? SimStream::Kind::kData
                                        : SimStream::Kind::kLocal);
}

void SimTransport::Put(const WorkerKey& key, Peer& peer, PagePtr page) {
  SimNode& to = network_->NodeOf(peer.address.address);
  Instant arrival;
  if (caps_.kind == TransportKind::kTcp) {
    arrival = network_->PageArrivalTime(node(), to, page->payload.size());
  }
  if (!options_.receiver_validates) {
    PutUnchecked(to, arrival, std::move(page));
    return;
  }
  peer.stream->Send(
      SimStream::kClient,
      [page = std::move(page)](SimStreamHandler& handler) {
        static_cast<Inbound&>(handler).OnPage(page);
      },
      arrival);
}

// The network card writes, whatever the processes do meanwhile.
void SimTransport::PutUnchecked(SimNode& to, Instant arrival, PagePtr page) {
  network_->At(std::max(arrival, network_->Arrival(node(), to)),
               [network = network_, &from = node(), &to, kind = caps_.kind,
                page = std::move(page)] {
                 auto there = to.transports.find(kind);
                 if (page->flushed || network->Blocked(from, to) ||
                     network->Living(page->destination) == nullptr ||
                     there == to.transports.end()) {
                   return;
                 }
                 there->second->LandUnchecked(*page);
               });
}

void SimTransport::OnAck(PostId post, uint64_t bytes,
                         const absl::Status& verdict) {
  auto out = outstanding_.find(post);
  if (out == outstanding_.end()) return;  // over: expired, say
  const WorkerKey key = out->second.peer;
  --out->second.pages;
  if (auto peer = peers_.find(key); peer != peers_.end()) {
    --peer->second.in_flight;
  }
  posts_.Acked(post, bytes, verdict);
  Pump(key);
}

void SimTransport::OnStreamLost(const WorkerKey& key, const absl::Status& why) {
  auto peer = peers_.find(key);
  if (peer == peers_.end() || peer->second.stream == nullptr ||
      peer->second.stream->open(SimStream::kClient)) {
    return;  // another one took its place
  }
  peer->second.stream = nullptr;
  posts_.Fail(key, absl::UnavailableError(why.message()));
  Collect();
}

void SimTransport::Collect() {
  for (PostCompletion& done : posts_.TakeCompletions()) {
    if (auto out = outstanding_.extract(done.post); !out.empty()) {
      Outstanding& rest = out.mapped();
      if (auto peer = peers_.find(rest.peer); peer != peers_.end()) {
        peer->second.in_flight -= rest.pages;
      }
      for (std::weak_ptr<Page>& weak : rest.unchecked) {
        if (PagePtr page = weak.lock()) page->Flush();
      }
    }
    std::vector<PagePtr> held = std::exchange(held_, {});
    for (PagePtr& page : held) {
      if (page->post != done.post) {
        held_.push_back(std::move(page));
      } else {
        ReleaseLate(std::move(page));
      }
    }
    completions_.push_back(std::move(done));
  }
  const Instant next = posts_.NextDeadline();
  if (next == armed_) return;
  armed_ = next;
  timers_->Cancel(timer_);
  if (next == Instant::Infinite()) return;
  timer_ = timers_->Schedule(next, [this] { OnDeadline(); });
}

void SimTransport::OnDeadline() {
  armed_ = Instant::Infinite();
  posts_.Expire(clock_->Now());
  std::vector<WorkerKey> waiting;
  for (const auto& [key, peer] : peers_) {
    if (posts_.waiting(key)) waiting.push_back(key);
  }
  Collect();
  for (const WorkerKey& key : waiting) Pump(key);
}

void SimTransport::ReleaseLate(PagePtr page) {
  const Instant when = network_->Now() + Hold(network_->random_, 50);
  network_->At(when,
               [network = network_, kind = caps_.kind,
                checked = options_.receiver_validates, page = std::move(page)] {
                 SimNode* to = network->Living(page->destination);
                 if (to == nullptr || page->flushed) return;
                 auto there = to->transports.find(kind);
                 if (there == to->transports.end()) return;
                 SimTransport* transport = there->second;
                 if (!checked) {
                   transport->LandUnchecked(*page);
                   return;
                 }
                 page->acknowledge = false;
                 to->Handle([transport, page] {
                   ReceiveChannel channel;
                   page->header.sequence = 1;
                   transport->Receive(page, channel, nullptr);
                 });
               });
}

}  // namespace penstock
