#pragma once

#include <vector>

#include "common/base/id.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"
#include "router/core/frame_merger.h"

namespace penstock {

// What a client has of one request: what its next attempt goes on after. As
// large as what was asked for, at most. Single-threaded; owned by the request.
class Delivered {
 public:
  // Precondition: follows what was added before, as a FrameMerger gives it.
  void Add(const TokenFrame& frame);

  // Tokens, of all samples.
  int tokens() const { return tokens_; }
  // Of the prompt, as far as their log-probabilities were given; the first
  // has none and counts.
  int scored() const { return scored_; }
  bool nothing() const { return tokens_ == 0 && scored_ == 0; }

  // What a leg has to know. Of deferred answers nothing: they are made anew,
  // the same ones, and what the client has of them is dropped on the way.
  std::vector<std::vector<DeliveredToken>> ForLegs(
      const GenerateRequest& request) const;
  std::vector<SampleStart> starts() const;

  // The tokens whose KV the next attempt goes on from; see LegRequest.
  std::vector<TokenId> History(const GenerateRequest& request) const;

 private:
  struct Sample {
    std::vector<DeliveredToken> tokens;
    bool ended = false;
  };

  std::vector<Sample> samples_;
  int tokens_ = 0;
  int scored_ = 0;
};

}  // namespace penstock
