#include "common/engine/handoff_state.h"

#include <iterator>

#include "common/base/check.h"

namespace penstock {
namespace {

using D = DecodeState;
using P = PrefillState;

constexpr const char* kDecodeNames[] = {
    "OFFERED", "CREDITED", "MAPPED",      "RECEIVING", "COMMITTED",
    "ACTIVE",  "REVOKING", "QUARANTINED", "FENCED",    "RELEASED"};
constexpr const char* kPrefillNames[] = {
    "QUEUED", "COMPUTING", "SENDING",          "SENT",
    "ACKED",  "ABORTING",  "LOCALLY_QUIESCED", "RELEASED"};

struct DecodeMove {
  D from, to;
};
constexpr DecodeMove kDecodeMoves[] = {
    {D::kOffered, D::kCredited},
    {D::kOffered, D::kReleased},  // reject, cancel, expiry or death
    {D::kCredited, D::kMapped},
    {D::kCredited, D::kReleased},
    {D::kMapped, D::kReceiving},
    {D::kMapped, D::kCommitted},  // nothing had to travel
    {D::kMapped, D::kRevoking},
    {D::kReceiving, D::kCommitted},
    {D::kReceiving, D::kRevoking},
    {D::kCommitted, D::kActive},
    {D::kCommitted, D::kRevoking},  // cancelled before the fence was done
    {D::kActive, D::kReleased},
    {D::kRevoking, D::kFenced},
    {D::kRevoking, D::kQuarantined},
    {D::kQuarantined, D::kReleased},
    {D::kFenced, D::kReleased},
};

struct PrefillMove {
  P from, to;
};
constexpr PrefillMove kPrefillMoves[] = {
    {P::kQueued, P::kComputing},
    {P::kQueued, P::kAborting},
    {P::kComputing, P::kSending},
    {P::kComputing, P::kSent},  // nothing had to travel
    {P::kComputing, P::kAborting},
    {P::kSending, P::kComputing},
    {P::kSending, P::kSent},
    {P::kSending, P::kAborting},
    {P::kSent, P::kAcked},
    {P::kSent, P::kAborting},
    {P::kAcked, P::kReleased},
    {P::kAborting, P::kLocallyQuiesced},
    {P::kLocallyQuiesced, P::kReleased},
};

}  // namespace

const char* StateName(DecodeState state) {
  return kDecodeNames[static_cast<int>(state)];
}

const char* StateName(PrefillState state) {
  return kPrefillNames[static_cast<int>(state)];
}

bool MayMove(DecodeState from, DecodeState to) {
  for (const DecodeMove& move : kDecodeMoves) {
    if (move.from == from && move.to == to) return true;
  }
  return false;
}

bool MayMove(PrefillState from, PrefillState to) {
  for (const PrefillMove& move : kPrefillMoves) {
    if (move.from == from && move.to == to) return true;
  }
  return false;
}

void Move(DecodeState& state, DecodeState to) {
  CHECK(MayMove(state, to)) << StateName(state) << " > " << StateName(to);
  state = to;
}

void Move(PrefillState& state, PrefillState to) {
  CHECK(MayMove(state, to)) << StateName(state) << " > " << StateName(to);
  state = to;
}

}  // namespace penstock
