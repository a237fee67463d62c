#pragma once

namespace penstock {

// Life of a transfer at the decode worker; see docs/architecture.md. REVOKING
// ends in FENCED when the transport says that no write can land any more, in
// QUARANTINED while it cannot say so yet.
enum class DecodeState {
  kOffered,
  kCredited,
  kMapped,
  kReceiving,
  kCommitted,
  kActive,
  kRevoking,
  kQuarantined,
  kFenced,
  kReleased,
};

// Life of a transfer at the prefill worker.
enum class PrefillState {
  kQueued,
  kComputing,
  kSending,
  kSent,
  kAcked,
  kAborting,
  kLocallyQuiesced,
  kReleased,
};

const char* StateName(DecodeState state);
const char* StateName(PrefillState state);

// The transition tables. A move that is not in them is a programmer error.
bool MayMove(DecodeState from, DecodeState to);
bool MayMove(PrefillState from, PrefillState to);

// Moves `state`, CHECKing the table.
void Move(DecodeState& state, DecodeState to);
void Move(PrefillState& state, PrefillState to);

}  // namespace penstock
