#pragma once

#include <memory>

#include "common/engine/leg_output.h"
#include "common/engine/worker_context.h"
#include "decode_worker/core/answer_group.h"

namespace penstock {

// A request that decode serves alone: its uncached part is too short to be
// worth a handoff, or there is no prefill worker. Owned by DecodeRole, which
// removes it when released(). Single-threaded.
class LocalGeneration {
 public:
  LocalGeneration(const WorkerContext* context, LegRequest leg, LegSink* sink);
  ~LocalGeneration();

  // Queues the request with the engine.
  void Start();
  // Ends the leg with `status` and gives its blocks back.
  void End(const absl::Status& status);
  // See AnswerGroup::YieldAtNextToken.
  void YieldAtNextToken() { answers_.YieldAtNextToken(); }
  void CountBlocks(BlockCensus& census) const { answers_.CountBlocks(census); }
  bool released() const { return output_.finished(); }

 private:
  const WorkerContext* context_;
  LegRequest leg_;
  LegOutput output_;
  AnswerGroup answers_;
  TimerId deadline_timer_ = 0;
};

}  // namespace penstock
