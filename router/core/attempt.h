#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"
#include "router/core/frame_merger.h"
#include "router/core/router_ports.h"
#include "router/core/routing_policy.h"
#include "router/core/worker_registry.h"

namespace penstock {

// One try at serving a request, from opened legs to one end.
enum class AttemptState {
  kOpening,    // not every leg was accepted yet
  kAccepted,   // every leg was; no token was delivered
  kStreaming,  // tokens were delivered
  kSettling,   // failed; the other leg may know why, and what it keeps
  kSucceeded,  // the last frame was delivered
  kFailed,
  kAbandoned,  // the router gave up: cancelled, or past the deadline
};

const char* AttemptStateName(AttemptState state);
// The one table of what may follow what.
bool MayFollow(AttemptState from, AttemptState to);

// Who should be left out of the next attempt.
enum class Blame { kNobody, kPrefill, kDecode, kPair };

// What an event means for whoever drives the attempt.
struct AttemptStep {
  enum class Next {
    kGoOn,
    kAwait,   // a leg may or may not settle this: call OnTimeout in a while
    kSettle,  // as kAwait, but soon: the other leg's worker hears of it too
    kEnd,     // ended, with `status`; cancel what is open unless it is OK
  };
  bool admitted = false;           // every leg is accepted now
  std::vector<TokenFrame> frames;  // to be delivered, in order
  Next next = Next::kGoOn;
  absl::Status status;           // with kEnd
  Blame blame = Blame::kNobody;  // with kEnd and an error
};

// The attempt machine: turns events of its legs into steps. Holds the load that
// its legs put on their workers. Knows neither time nor client nor retries.
// Events after the end are absorbed. Single-threaded; owned by a request.
class Attempt {
 public:
  struct Leg {
    LegId id = 0;
    WorkerKey worker;
    LoadReservation load;
    bool keeps = false;  // its worker, KV for this leg
    bool accepted = false;
    bool ended = false;      // as WorkerLegs says
    bool lost = false;       // its worker is: nothing more is expected
    bool cancelled = false;  // WorkerLegs was told
    absl::Status status;

    bool open() const { return !ended && !lost; }
  };

  // `merge.handoff` follows from the legs.
  Attempt(AttemptId id, Leg decode, std::optional<Leg> prefill,
          MergeOptions merge = {});

  AttemptStep OnAccepted(LegKind kind);
  AttemptStep OnFrame(LegKind kind, TokenFrame frame);
  AttemptStep OnLegFinished(LegKind kind, const absl::Status& status);
  // The registry lost the leg's worker.
  AttemptStep OnWorkerLost(LegKind kind, const absl::Status& why);
  // A wait that an earlier step asked for is over.
  AttemptStep OnTimeout();
  // No-op when ended.
  void Abandon();

  AttemptId id() const { return id_; }
  AttemptState state() const { return state_; }
  bool ended() const { return state_ >= AttemptState::kSucceeded; }
  // Every leg was accepted, whatever came of it.
  bool admitted() const { return admitted_; }
  const Leg& decode() const { return decode_; }
  const std::optional<Leg>& prefill() const { return prefill_; }
  // Legs that WorkerLegs has not ended.
  std::vector<LegId> unfinished() const;
  // Of those, the ones to be cancelled now; each is given once.
  std::vector<LegId> TakeCancellable();
  // True once: then the leg is to be cancelled now.
  bool TakeCancel(LegKind kind);
  // The KV that its legs' workers hold for the next attempt, as far as they
  // have said so.
  std::vector<KeptPrefix> kept() const;
  int held_loads() const;

 private:
  Leg& leg(LegKind kind);
  bool AnyOpen() const;
  void MoveTo(AttemptState state);
  AttemptStep Advance();
  AttemptStep OnLegFailed(LegKind kind);
  AttemptStep OnLegDone(LegKind kind);
  AttemptStep End(absl::Status status, Blame blame);
  // Ends with the most telling of the legs' reasons.
  AttemptStep EndWithReason();

  AttemptId id_;
  AttemptState state_ = AttemptState::kOpening;
  bool admitted_ = false;
  Leg decode_;
  std::optional<Leg> prefill_;
  FrameMerger merger_;
};

}  // namespace penstock
