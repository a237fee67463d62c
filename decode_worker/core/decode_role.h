#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/engine/worker_context.h"
#include "common/env/clock.h"
#include "common/env/timers.h"
#include "common/peer/leg.h"
#include "common/peer/peer.h"
#include "decode_worker/core/decode_transfer.h"
#include "decode_worker/core/local_generation.h"

namespace penstock {

// A worker's decode side: brings decode legs and prefill offers together,
// grants blocks in order of arrival, and generates. Owned by the WorkerCore;
// single-threaded.
class DecodeRole {
 public:
  explicit DecodeRole(const WorkerContext* context);
  ~DecodeRole();

  void StartLeg(LegRequest leg, LegSink* sink);
  void CancelLeg(TransferId id);

  void OnPeerMessage(const WorkerKey& peer, HandoffMessage message);
  void OnPeerLost(const WorkerKey& peer, const absl::Status& why);

  void OnArrival(TransportKind transport, const PageArrival& arrival);

  // Credits, fences, clean-up. True when something happened.
  bool Poll();

  void CountBlocks(BlockCensus& census) const;

  // Refuses new offers but those of requests that are kept here. Running
  // requests of one answer end at their next token with kDraining, their KV
  // kept, so that they go on elsewhere; others finish here.
  void BeginDrain();

  // A leg of the request left its KV here, or is about to, for the next one; or
  // it ran here until the drain, and may have to come back.
  bool keeps(RequestId request) const;

  // Those whose tokens are made here now.
  std::vector<TransferId> Generating() const;
  size_t transfers() const { return transfers_.size(); }
  bool idle() const { return transfers_.empty() && local_.empty(); }
  // Legs that wait for blocks or for their prefill worker.
  int waiting() const;

 private:
  DecodeTransfer* Find(const WorkerKey& peer, TransferId id);
  void OnOffer(const WorkerKey& peer, Offer offer);
  bool GrantCredits();
  // While the engine is starved no credit is granted; when that has lasted for
  // HandoffOptions::starvation_timeout, credits are taken back one after the
  // other, those of the latest requests first, never that of a request that is
  // earlier than all who wait. Workers that are each other's prefill and decode
  // worker would else wait for each other's blocks for ever; see
  // docs/adr/0007-earlier-requests-take-credits.md.
  bool RelieveEngine();
  bool Reap();

  const WorkerContext* context_;
  // Of transfers_, those that Poll has to look at.
  std::set<TransferId> unsettled_;
  // Ordered by id; the order of credits is kept apart, by arrival.
  std::map<TransferId, std::unique_ptr<DecodeTransfer>> transfers_;
  std::vector<TransferId> uncredited_;
  std::map<TransferId, std::unique_ptr<LocalGeneration>> local_;
  std::optional<Instant> starved_since_;
  TimerId starved_timer_ = 0;
  bool draining_ = false;
  std::set<RequestId> gave_up_;  // what BeginDrain ended, or will
};

}  // namespace penstock
