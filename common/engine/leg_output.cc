#include "common/engine/leg_output.h"

#include <utility>

#include "common/peer/error_reason.h"

namespace penstock {

LegOutput::LegOutput(const LegRequest& leg, LegKind kind, LegSink* sink,
                     const Clock* clock, HandoffProbe* probe)
    : attempt_(leg.attempt),
      kind_(kind),
      sink_(sink),
      clock_(clock),
      probe_(probe),
      received_at_(clock->Now()),
      scheduled_at_(received_at_),
      first_token_at_(received_at_) {
  probe_->LegStarted(kind_ == LegKind::kPrefill);
}

void LegOutput::Accept() {
  if (sink_ == nullptr || std::exchange(accepted_, true)) return;
  sink_->OnAccepted();
}

void LegOutput::MarkScheduled() {
  scheduled_at_ = clock_->Now();
  timings_.queue = scheduled_at_ - received_at_;
}

void LegOutput::MarkToken(int index) {
  if (std::exchange(has_first_token_, true)) return;
  first_token_at_ = clock_->Now();
  if (index > 0) return;  // another leg made the first
  timings_.first_token = first_token_at_ - received_at_;
  timings_.prefill = first_token_at_ - scheduled_at_;
}

void LegOutput::DeliverPrompt(PromptLogprobs part) {
  TokenFrame frame;
  frame.prompt = std::move(part);
  Deliver(std::move(frame), nullptr);
}

void LegOutput::Deliver(const TokenDelivery& delivery, const LegFacts* facts) {
  MarkToken(delivery.index);
  TokenFrame frame;
  frame.sample = delivery.sample;
  frame.first_index = delivery.index;
  frame.tokens.push_back(delivery.token);
  frame.finish = delivery.finish;
  frame.final_text = delivery.final_text;
  Deliver(std::move(frame), facts);
}

void LegOutput::Deliver(TokenFrame frame, const LegFacts* facts) {
  if (sink_ == nullptr) return;
  frame.attempt = attempt_;
  if (facts != nullptr) {
    timings_.decode = clock_->Now() - first_token_at_;
    frame.usage = facts->usage;
    frame.timings = timings_;
    frame.transfer = facts->transfer;
  }
  sink_->OnFrame(std::move(frame));
}

void LegOutput::Finish(const absl::Status& status) {
  LegSink* sink = std::exchange(sink_, nullptr);
  if (sink == nullptr) return;
  probe_->LegEnded(kind_ == LegKind::kPrefill, OutcomeName(status));
  sink->OnFinished(status);
}

}  // namespace penstock
