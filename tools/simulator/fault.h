#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock {

// Everything that can go wrong in a simulated cluster.
enum class FaultKind {
  // Between `host` and `peer` (both directions; an empty peer: all of them),
  // while it lasts.
  // Nothing arrives. Streams break once three keepalives, 3 s, are missed by
  // the side that dialled (20 s by the other); what they carried before that
  // arrives when the path heals.
  kPartition,
  // Nothing that `host` sends arrives, and it does not notice: only the other
  // side misses keepalives.
  kHalfOpen,
  kDelay,     // `amount` seconds more for everything
  kSlowLink,  // bandwidth is divided by `amount`
  // Pages on their way between them, each with probability `amount` (1: all).
  kPostFails,       // fails to post, or fails half way
  kCompletionLost,  // arrives, but the source hears nothing until its deadline
  kPageDuplicated,
  kPageReordered,  // held back behind later ones
  kPageCorrupted,  // a bit flips behind the sender's checksum
  kLateWrite,      // lands after its post was cancelled or expired
  // Control messages between them, each with probability `amount`. Streams are
  // reliable: a lost message is a broken stream soon after.
  kStreamBreaks,
  // A whole host.
  kKill,    // the process is gone; `lasts` > 0: it is back then, at the same
            // address, with another incarnation
  kFreeze,  // stopped; what happened meanwhile is handled when it wakes
  kSlow,    // its steps take `amount` times as long
  // Its clock is `amount` seconds ahead of what it was; negative: it stands
  // still for as long.
  kClockJump,
  kClockDrift,    // its clock runs `amount` times as fast
  kStepFails,     // its next backend step fails
  kKvFull,        // `amount` of its free blocks are taken away
  kDrain,         // it is told to drain
  kNoHeartbeats,  // its load reports do not reach the router
};
inline constexpr int kFaultKinds = 20;

// One fault, as data: a plan is shrunk by leaving some out.
struct Fault {
  FaultKind kind = FaultKind::kKill;
  absl::Duration at;          // from the start of the run
  absl::Duration lasts = {};  // zero: once, or to the end of the run
  std::string host = {};      // "router", "router1", "decode2", ...
  std::string peer = {};      // empty: any
  double amount = 1;

  friend bool operator==(const Fault&, const Fault&) = default;
};

// Between two hosts, so that it may have a `peer`; else of one host.
constexpr bool IsOnPath(FaultKind kind) {
  return kind <= FaultKind::kStreamBreaks;
}

// "kill" for kKill, and so on: the names in plans and logs.
absl::string_view FaultName(FaultKind kind);

// One line, "kill at 1.5s for 200ms host prefill0", and back: the kind, then
// the fields at, for, host, peer and amount, in any order; one that is left out
// has its default. INVALID_ARGUMENT quotes the line and says what is wrong.
std::string FormatFault(const Fault& fault);
absl::StatusOr<Fault> ParseFault(absl::string_view line);

}  // namespace penstock
