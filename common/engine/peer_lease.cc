#include "common/engine/peer_lease.h"

#include <utility>

namespace penstock {

PeerLease::PeerLease(const WorkerContext* context, std::function<void()> renew,
                     std::function<void()> expired)
    : context_(context),
      renew_(std::move(renew)),
      expired_(std::move(expired)) {}

void PeerLease::Refresh() {
  context_->timers->Cancel(expiry_timer_);
  expiry_timer_ = context_->timers->Schedule(
      context_->clock->Now() + context_->options.lease, expired_);
}

void PeerLease::StartRenewing() {
  renew_timer_ = context_->timers->Schedule(
      context_->clock->Now() + context_->options.renew_every, [this] {
        renew_();
        StartRenewing();
      });
}

void PeerLease::End() {
  context_->timers->Cancel(std::exchange(expiry_timer_, 0));
  context_->timers->Cancel(std::exchange(renew_timer_, 0));
}

}  // namespace penstock
