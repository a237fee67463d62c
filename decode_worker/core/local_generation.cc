#include "decode_worker/core/local_generation.h"

#include <utility>

#include "common/peer/error_reason.h"

namespace penstock {

LocalGeneration::LocalGeneration(const WorkerContext* context, LegRequest leg,
                                 LegSink* sink)
    : context_(context),
      leg_(std::move(leg)),
      output_(leg_, LegKind::kDecode, sink, context->clock, context->probe),
      answers_(context, &leg_,
               context->hasher->Root({context->content, "", leg_.request.tenant,
                                      leg_.request.cache_salt}),
               &output_, [this](const absl::Status& status) { End(status); }) {}

LocalGeneration::~LocalGeneration() {
  context_->timers->Cancel(deadline_timer_);
}

void LocalGeneration::Start() {
  absl::Status started = AnswerGroup::CheckFits(*context_, leg_.request);
  if (started.ok()) started = answers_.Start();
  if (!started.ok()) {
    End(started);
    return;
  }
  if (leg_.request.timeout != absl::InfiniteDuration()) {
    deadline_timer_ = context_->timers->Schedule(
        context_->clock->Now() + leg_.request.timeout, [this] {
          End(MakeError(ErrorReason::kDeadline,
                        "the request's deadline passed"));
        });
  }
  output_.Accept();
}

void LocalGeneration::End(const absl::Status& status) {
  context_->timers->Cancel(std::exchange(deadline_timer_, 0));
  answers_.Stop();
  output_.Finish(status);
}

}  // namespace penstock
