#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"

namespace penstock {

// Joins the frames of an attempt's legs into one stream whose token indices are
// gapless from 0: token 0 comes from prefill, the rest from decode, and decode
// may be ahead of prefill's only frame. Single-threaded; owned by an attempt.
class FrameMerger {
 public:
  // `handoff`: decode starts at token 1; else it gives every token.
  explicit FrameMerger(bool handoff) { decode_.expected = handoff ? 1 : 0; }

  // Tokens that came before are dropped. INTERNAL when the leg left tokens out,
  // names another sample, ends before what it gave already, or is too far ahead
  // of the other leg; the attempt has to end then.
  absl::Status Push(LegKind leg, TokenFrame frame);

  // Frames that can be delivered now, in order; each is given once.
  std::vector<TokenFrame> Take();

  // Tokens in a row from 0, taken or ready to be.
  int received() const { return next_; }
  // Has decode given a token? Then it owns the prompt's KV.
  bool decoding() const { return decode_.gave; }
  // The last frame is taken or ready to be: nothing can follow.
  bool complete() const { return complete_; }

 private:
  struct Leg {
    int expected = 0;    // index of its next token
    bool gave = false;   // a token
    bool ended = false;  // it sent its last frame
  };

  void Append(TokenFrame frame);

  Leg prefill_, decode_;
  int next_ = 0;  // next index of the joined stream
  std::vector<TokenFrame> ready_;
  std::deque<TokenFrame> held_;  // decode's, ahead of prefill's; in order
  size_t held_tokens_ = 0;
  bool complete_ = false;
};

}  // namespace penstock
