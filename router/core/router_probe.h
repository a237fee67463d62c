#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/model/token_frame.h"
#include "common/peer/error_reason.h"
#include "common/peer/leg.h"
#include "common/peer/worker_report.h"
#include "router/core/decision_record.h"

namespace penstock {

// One placement as the policy made it.
struct PlacementFacts {
  RequestId request;
  AttemptId attempt;
  std::string prefill;  // empty: decode prefills by itself
  std::string decode;
  int prompt_tokens = 0;
  // Prompt tokens that the router believes cached where they are needed: on
  // the prefill worker, or on the decode worker when it prefills by itself.
  int hit_tokens = 0;
};

// How a request that was admitted to the router ended.
struct RequestOutcome {
  RequestId request;
  absl::Status status;
  FinishReason finish = FinishReason::kNone;  // with an OK status
  Usage usage;                                // with an OK status
  int delivered_tokens = 0;
  int attempts = 0;
  absl::Duration elapsed;  // since Submit
};

// What the router core tells metrics. Called on the router's loop thread; must
// not block nor call back.
class RouterProbe {
 public:
  virtual ~RouterProbe() = default;

  // Taken by Submit; exactly one RequestFinished follows.
  virtual void RequestStarted(RequestId request, int prompt_tokens) = 0;
  // Refused by Submit; nothing follows.
  virtual void RequestRejected(ErrorReason reason) = 0;
  // Its first place was found, after so long in the queue.
  virtual void RequestBegan(RequestId request, absl::Duration waited) = 0;
  virtual void RequestPlaced(const PlacementFacts& placement) = 0;
  virtual void RequestRetried(RequestId request, ErrorReason reason) = 0;
  // Once for each RequestPlaced, when its attempt has ended.
  virtual void DecisionJudged(const DecisionOutcome& outcome) = 0;
  // The share of the prompts' tokens whose hits were predicted wrongly lately,
  // and whether that is alarming; after each placement that can tell.
  virtual void HitsPredicted(double wrong_share, bool alarm) = 0;
  virtual void FirstToken(RequestId request, absl::Duration since_submit) = 0;
  // Tokens after the first frame, and the time since the frame before.
  virtual void TokensDelivered(RequestId request, int tokens,
                               absl::Duration since_last_frame) = 0;
  virtual void RequestFinished(const RequestOutcome& outcome) = 0;
  // After each change of either number.
  virtual void InFlight(int running, int queued) = 0;

  virtual void WorkerRegistered(const WorkerInfo& info) = 0;
  virtual void WorkerHealthChanged(const WorkerKey& worker,
                                   WorkerHealth health) = 0;
  virtual void WorkerLost(const WorkerKey& worker, const absl::Status& why) = 0;
  // From now on a worker gets no leg of this kind for its failures, or gets
  // them again.
  virtual void WorkerVetoed(LegKind leg, const WorkerKey& worker,
                            bool vetoed) = 0;
  // A worker was asked to send cache events again.
  virtual void CacheResyncAsked(const WorkerKey& worker) = 0;
};

// Listens to nothing.
class NullRouterProbe : public RouterProbe {
 public:
  void RequestStarted(RequestId, int) override {}
  void RequestRejected(ErrorReason) override {}
  void RequestBegan(RequestId, absl::Duration) override {}
  void RequestPlaced(const PlacementFacts&) override {}
  void RequestRetried(RequestId, ErrorReason) override {}
  void DecisionJudged(const DecisionOutcome&) override {}
  void HitsPredicted(double, bool) override {}
  void FirstToken(RequestId, absl::Duration) override {}
  void TokensDelivered(RequestId, int, absl::Duration) override {}
  void RequestFinished(const RequestOutcome&) override {}
  void InFlight(int, int) override {}
  void WorkerRegistered(const WorkerInfo&) override {}
  void WorkerHealthChanged(const WorkerKey&, WorkerHealth) override {}
  void WorkerLost(const WorkerKey&, const absl::Status&) override {}
  void WorkerVetoed(LegKind, const WorkerKey&, bool) override {}
  void CacheResyncAsked(const WorkerKey&) override {}
};

}  // namespace penstock
