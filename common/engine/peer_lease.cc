#include "common/engine/peer_lease.h"

#include <utility>

namespace penstock {

PeerLease::PeerLease(const WorkerContext* context, std::function<void()> renew,
                     std::function<void()> expired)
    : context_(context),
      renew_(std::move(renew)),
      expired_(std::move(expired)) {}

void PeerLease::Refresh() {
  expires_ = context_->clock->Now() + context_->options.lease;
  if (expiry_timer_ == 0) Watch();
}

// Signs of life are many, one for each page: the timer stays, and looks when it
// fires whether any came.
void PeerLease::Watch() {
  expiry_timer_ = context_->timers->Schedule(expires_, [this] {
    expiry_timer_ = 0;
    if (context_->clock->Now() < expires_) {
      Watch();
    } else {
      expired_();
    }
  });
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
