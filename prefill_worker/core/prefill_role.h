#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/engine/worker_context.h"
#include "common/peer/leg.h"
#include "common/peer/peer.h"
#include "prefill_worker/core/prefill_transfer.h"

namespace penstock {

// A worker's prefill side: takes prefill legs, dials their decode workers and
// routes what those answer. Owned by the WorkerCore; single-threaded.
class PrefillRole {
 public:
  explicit PrefillRole(const WorkerContext* context);
  ~PrefillRole();

  void StartLeg(LegRequest leg, LegSink* sink);
  void CancelLeg(TransferId id);

  void OnPeerReady(const WorkerKey& peer);
  void OnDialFailed(const PeerAddress& address, const absl::Status& why);
  void OnPeerMessage(const WorkerKey& peer, const HandoffMessage& message);
  void OnPeerLost(const WorkerKey& peer, const absl::Status& why);

  void OnCompletion(TransportKind transport, const PostCompletion& completion);

  // Clean-up. True when something happened.
  bool Poll();

  void CountBlocks(BlockCensus& census) const;

  // A failed leg of the request is about to leave its KV to the next one.
  bool keeps(RequestId request) const;
  bool idle() const { return transfers_.empty(); }
  // Legs that wait for a decode worker's credit.
  int waiting() const;

 private:
  const WorkerContext* context_;
  std::map<std::string, WorkerKey> peers_;  // last incarnation of each name
  std::map<TransferId, std::unique_ptr<PrefillTransfer>> transfers_;
};

}  // namespace penstock
