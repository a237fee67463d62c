#pragma once

#include <memory>

#include "common/engine/leg_output.h"
#include "common/engine/worker_context.h"

namespace penstock {

// A request that decode serves alone: its uncached part is too short to be
// worth a handoff, or there is no prefill worker. Owned by DecodeRole, which
// removes it when released(). Single-threaded.
class LocalGeneration : public SequenceListener {
 public:
  LocalGeneration(const WorkerContext* context, LegRequest leg, LegSink* sink);
  ~LocalGeneration() override;

  // Queues the request with the engine.
  void Start();
  // Ends the leg with `status` and gives its blocks back.
  void End(const absl::Status& status);
  bool released() const { return output_.finished(); }

 private:
  void OnScheduled() override;
  void OnToken(const TokenDelivery& delivery) override;
  void OnFailed(const absl::Status& status) override;

  const WorkerContext* context_;
  LegRequest leg_;
  LegOutput output_;
  SequenceId sequence_;
  TimerId deadline_timer_ = 0;
};

}  // namespace penstock
