#include "tools/simulator/sim_stream.h"

#include <algorithm>
#include <utility>

#include "tools/simulator/sim_network.h"

namespace penstock {
namespace {

constexpr absl::Duration kLocalLatency = absl::Microseconds(10);
// How long the other side may be silent: the one that dialled pings each
// second and gives up after three; the one that was dialled is more patient.
constexpr absl::Duration kPatience[] = {absl::Seconds(3), absl::Seconds(20)};

}  // namespace

void SimStream::Send(Side from, Message message, Instant arrival) {
  if (!ends_[from].open || broken_) return;
  if (kind_ == Kind::kControl &&
      network_->Strikes(FaultKind::kStreamBreaks, *ends_[from].node,
                        *ends_[Other(from)].node)) {
    Break(absl::UnavailableError("the stream broke"));
    return;
  }
  Push(from, {arrival, std::move(message), absl::OkStatus()});
}

void SimStream::Push(Side from, Item item) {
  Direction& direction = directions_[from];
  const Instant soonest =
      kind_ == Kind::kLocal
          ? network_->Now() + kLocalLatency
          : network_->Arrival(*ends_[from].node, *ends_[Other(from)].node);
  item.arrival = std::max({item.arrival, direction.last_arrival, soonest});
  direction.last_arrival = item.arrival;
  network_->At(item.arrival,
               [self = shared_from_this(), from] { self->Pump(from); });
  direction.queue.push_back(std::move(item));
}

void SimStream::Pump(Side from) {
  std::deque<Item>& queue = directions_[from].queue;
  const Side to = Other(from);
  while (!queue.empty() && queue.front().arrival <= network_->Now()) {
    if (kind_ != Kind::kLocal &&
        network_->Blocked(*ends_[from].node, *ends_[to].node)) {
      return;
    }
    Item item = std::move(queue.front());
    queue.pop_front();
    Deliver(to, std::move(item));
  }
  ForgetIfOver();
}

void SimStream::Deliver(Side to, Item item) {
  End& end = ends_[to];
  if (!end.open) return;
  if (end.life == 0) end.life = end.node->life;
  if (!end.node->alive || end.node->life != end.life) {
    // Nobody listens there (any more).
    end.open = false;
    Push(to,
         {Instant(), nullptr, absl::UnavailableError("connection refused")});
    return;
  }
  if (!end.node->frozen()) {
    end.node->Run([&] { Receive(to, item); });
    return;
  }
  end.node->Handle([self = shared_from_this(), to, item = std::move(item)] {
    self->Receive(to, item);
  });
}

void SimStream::Receive(Side to, const Item& item) {
  End& end = ends_[to];
  if (!end.open) return;
  if (to == kServer && accept_) {
    Accept accept = std::exchange(accept_, nullptr);
    std::unique_ptr<SimStreamHandler> handler = accept(shared_from_this());
    if (handler == nullptr || !end.open) return;
    end.handler = std::move(handler);
  }
  if (item.message == nullptr) {
    EndSide(to, item.status);
  } else if (end.handler != nullptr) {
    item.message(*end.handler);
  }
}

void SimStream::EndSide(Side side, const absl::Status& status) {
  ends_[side].open = false;
  std::unique_ptr<SimStreamHandler> handler = std::move(ends_[side].handler);
  if (handler != nullptr) handler->OnClosed(status);
  ForgetIfOver();
}

void SimStream::Close(Side side, const absl::Status& status) {
  End& end = ends_[side];
  if (!end.open) return;
  end.open = false;
  directions_[Other(side)].queue.clear();
  Push(side, {Instant(), nullptr, status});
  network_->At(network_->Now(), [self = shared_from_this(), side, status] {
    End& end = self->ends_[side];
    if (end.handler == nullptr || !end.node->alive ||
        end.node->life != end.life) {
      return;
    }
    end.node->Handle([self, side, status] { self->EndSide(side, status); });
  });
}

void SimStream::Break(const absl::Status& status) {
  if (std::exchange(broken_, true)) return;
  for (Side side : {kClient, kServer}) {
    directions_[side].queue.clear();
    Push(side, {Instant(), nullptr, status});
  }
}

void SimStream::Refresh() {
  for (Side side : {kClient, kServer}) {
    End& end = ends_[side];
    if (kind_ != Kind::kControl || !end.open || end.node->frozen() ||
        !network_->Silent(*end.node, *ends_[Other(side)].node)) {
      end.silent_since.reset();
    } else if (!end.silent_since.has_value()) {
      const Instant now = network_->Now();
      end.silent_since = now;
      network_->At(now + kPatience[side],
                   [self = shared_from_this(), side, now] {
                     self->CheckSilence(side, now);
                   });
    }
  }
  Pump(kClient);
  Pump(kServer);
}

void SimStream::CheckSilence(Side side, Instant since) {
  End& end = ends_[side];
  if (!end.open || end.silent_since != since) return;
  directions_[side].queue.clear();
  Close(side, absl::UnavailableError("keepalives were missed"));
}

void SimStream::Die(Side side) {
  End& end = ends_[side];
  network_->Bury(std::move(end.handler));
  if (!end.open) return;
  end.open = false;
  Push(side, {Instant(), nullptr,
              absl::UnavailableError("connection reset by peer")});
}

void SimStream::ForgetIfOver() {
  if (!ends_[kClient].open && !ends_[kServer].open &&
      directions_[kClient].queue.empty() &&
      directions_[kServer].queue.empty()) {
    network_->Forget(id_);
  }
}

}  // namespace penstock
