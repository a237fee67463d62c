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

void LegOutput::Deliver(const TokenDelivery& delivery, const Sequence& sequence,
                        const TransferSummary& transfer) {
  if (sink_ == nullptr) return;
  Instant now = clock_->Now();
  if (!std::exchange(has_first_token_, true)) {
    first_token_at_ = now;
    if (delivery.index == 0) {
      timings_.first_token = now - received_at_;
      timings_.prefill = now - scheduled_at_;
    }
  }
  TokenFrame frame;
  frame.attempt = attempt_;
  frame.first_index = delivery.index;
  frame.tokens.push_back(delivery.token);
  frame.finish = delivery.finish;
  if (delivery.finish != FinishReason::kNone) {
    frame.final_text = delivery.final_text;
    frame.usage.prompt_tokens = sequence.prompt_tokens();
    frame.usage.cached_tokens =
        cached_tokens_ >= 0 ? cached_tokens_ : sequence.cached_tokens;
    frame.usage.completion_tokens = sequence.generated();
    timings_.decode = now - first_token_at_;
    frame.timings = timings_;
    frame.transfer = transfer;
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
