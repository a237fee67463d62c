#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"

namespace penstock {

// Where an attempt goes on with one sample.
struct SampleStart {
  int first = 0;       // index of the first token that is missing
  bool ended = false;  // none is
};

// What an attempt's legs are to give.
struct MergeOptions {
  bool handoff = false;   // there is a prefill leg
  int samples = 1;        // answers that are given back
  bool deferred = false;  // all by decode, at the end
  int max_tokens = std::numeric_limits<int>::max();  // of each sample
  // What earlier attempts have delivered, by sample; empty: nothing.
  std::vector<SampleStart> starts = {};
  // Prompt tokens in all, when their log-probabilities were asked for; and how
  // many of them an earlier attempt has delivered.
  int scored_prompt = 0;
  int scored_before = 0;
};

// Joins the frames of an attempt's legs into one stream in which the token
// indices of each sample are gapless from where it starts: its first token
// comes from prefill, the rest from decode, and decode may be ahead of
// prefill's frames. The prompt's log-probabilities come before any token.
// Single-threaded; owned by an attempt.
class FrameMerger {
 public:
  explicit FrameMerger(const MergeOptions& options);

  // Tokens that came before are dropped. INTERNAL when the leg left tokens out,
  // names a sample that nobody asked for, ends one before what it gave already,
  // gives more than was asked for, or is too far ahead of the other leg; the
  // attempt has to end then.
  absl::Status Push(LegKind leg, TokenFrame frame);

  // Frames that can be delivered now, in order; each is given once. Usage,
  // timings and transfer are on the very last.
  std::vector<TokenFrame> Take();

  // Tokens of this attempt, taken or ready to be, of all samples.
  int received() const { return received_; }
  // Has prefill given all that decode goes on from?
  bool prefilled() const;
  // Has decode given a token? Then it owns the prompt's KV.
  bool decoding() const { return decoding_; }
  // The last frame is taken or ready to be: nothing can follow.
  bool complete() const { return open_ == 0; }

 private:
  struct Leg {
    int expected = 0;    // index of its next token
    bool ended = false;  // it sent its last frame
  };
  struct Sample {
    Leg prefill, decode;
    int first = 0;
    int next = 0;  // index in the joined stream
    bool complete = false;
    std::deque<TokenFrame> held;  // decode's, ahead of prefill's; in order
  };

  absl::Status PushPrompt(LegKind leg, PromptLogprobs part);
  absl::Status PushTokens(LegKind leg, TokenFrame frame);
  // `expected`: the index of the leg's next token.
  absl::Status CheckIndices(LegKind leg, const TokenFrame& frame,
                            int expected) const;
  bool Ready(const Sample& sample, const TokenFrame& frame) const;
  void Release(Sample& sample);
  void Append(Sample& sample, TokenFrame frame);

  MergeOptions options_;
  std::vector<Sample> samples_;
  int open_;             // samples that are not complete
  int prompt_next_ = 0;  // of the prompt's log-probabilities
  int received_ = 0;
  bool decoding_ = false;
  std::vector<TokenFrame> ready_;
  size_t held_tokens_ = 0;
  TokenFrame facts_;  // the usage, timings and transfer that came
};

}  // namespace penstock
