#include "router/core/admission/circuit_breaker.h"

#include <algorithm>
#include <utility>

namespace penstock {

CircuitBreaker::State CircuitBreaker::state(Instant now) const {
  if (closed_) return State::kClosed;
  return now < half_open_at_ ? State::kOpen : State::kHalfOpen;
}

bool CircuitBreaker::Allows(Instant now) const {
  const State at = state(now);
  return at == State::kClosed || (at == State::kHalfOpen && !probing_);
}

void CircuitBreaker::OnStarted(Instant now) {
  // Others that are sent here although it is open, for want of better ones,
  // are probes as well.
  if (state(now) == State::kHalfOpen) probing_ = true;
}

void CircuitBreaker::OnProgress(Instant now) {
  if (state(now) == State::kHalfOpen) OnEnded(Verdict::kGood, now);
}

void CircuitBreaker::OnEnded(Verdict verdict, Instant now) {
  const State before = state(now);
  if (verdict == Verdict::kNeutral) {
    probing_ = false;  // it told nothing: another may try
    return;
  }
  if (verdict == Verdict::kGood) {
    failures_ = 0;
    if (before == State::kOpen) return;  // begun before it opened
    opened_ = 0;
    closed_ = true;
    probing_ = false;
    half_open_at_ = Instant::Infinite();
    return;
  }
  ++failures_;
  if (before == State::kOpen) return;
  if (before == State::kClosed && failures_ < options_.failures) return;
  const absl::Duration pause = std::min(
      options_.max_open, options_.open_for * (1 << std::min(opened_, 16)));
  ++opened_;
  closed_ = false;
  probing_ = false;
  half_open_at_ = now + pause;
}

}  // namespace penstock
