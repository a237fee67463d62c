#include "decode_worker/core/local_generation.h"

#include <algorithm>
#include <utility>

#include "common/peer/error_reason.h"

namespace penstock {

LocalGeneration::LocalGeneration(const WorkerContext* context, LegRequest leg,
                                 LegSink* sink)
    : context_(context),
      leg_(std::move(leg)),
      output_(leg_, LegKind::kDecode, sink, context->clock, context->probe) {}

LocalGeneration::~LocalGeneration() {
  context_->timers->Cancel(deadline_timer_);
}

void LocalGeneration::Start() {
  const GenerateRequest& request = leg_.request;
  absl::Status fits = context_->engine->CheckFits(std::min<int64_t>(
      static_cast<int64_t>(request.prompt.size()) + request.stop.max_tokens,
      context_->context_length));
  if (!fits.ok()) {
    End(fits);
    return;
  }
  BlockHash root = context_->hasher->Root(
      {context_->content, "", request.tenant, request.cache_salt});
  auto added = context_->engine->Add(
      std::make_unique<Sequence>(request, root, context_->tokenizer,
                                 context_->context_length),
      this);
  if (!added.ok()) {
    End(added.status());
    return;
  }
  sequence_ = *added;
  if (request.timeout != absl::InfiniteDuration()) {
    deadline_timer_ = context_->timers->Schedule(
        context_->clock->Now() + request.timeout, [this] {
          End(MakeError(ErrorReason::kDeadline,
                        "the request's deadline passed"));
        });
  }
  output_.Accept();
}

void LocalGeneration::OnScheduled() { output_.MarkScheduled(); }

void LocalGeneration::OnToken(const TokenDelivery& delivery) {
  const Sequence& sequence = *context_->engine->Find(sequence_);
  TransferSummary summary;
  summary.transport = "local";
  summary.decode_prompt_tokens = sequence.prompt_computed_here;
  output_.Deliver(delivery, sequence, summary);
  if (delivery.finish != FinishReason::kNone) End(absl::OkStatus());
}

void LocalGeneration::OnFailed(const absl::Status& status) {
  End(MakeError(ErrorReason::kInternal, status.message()));
}

void LocalGeneration::End(const absl::Status& status) {
  context_->timers->Cancel(std::exchange(deadline_timer_, 0));
  if (sequence_) context_->engine->Remove(std::exchange(sequence_, {}));
  output_.Finish(status);
}

}  // namespace penstock
