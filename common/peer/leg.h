#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"
#include "common/peer/peer.h"

namespace penstock {

enum class LegKind { kPrefill, kDecode };

// A token that the client has: what another worker needs to go on after it.
struct DeliveredToken {
  TokenId token = 0;
  float mirostat_mu = 0;  // after it; 0 unless asked for

  friend bool operator==(const DeliveredToken&,
                         const DeliveredToken&) = default;
};

// The router's call to one worker for one attempt at a request. An attempt has
// a decode leg and, unless decode prefills by itself, a prefill leg.
struct LegRequest {
  GenerateRequest request;
  AttemptId attempt;
  // Prefill leg: the decode worker to hand off to. Decode leg: the prefill
  // worker to expect an Offer from; an empty name: prefill locally.
  PeerAddress partner;
  // A worker that is believed to have the KV of so many leading tokens of
  // history(), more than this one; an empty name: nobody.
  PeerAddress source;
  int source_tokens = 0;
  // Tokens that earlier attempts delivered, by sample; empty: none. The answers
  // go on after them: the first frame of sample s begins at index
  // delivered[s].size(), drawn as if this leg had made all before it. At most
  // `request.n` samples; of deferred answers nothing was delivered.
  std::vector<std::vector<DeliveredToken>> delivered;
  // Worker names are reused; the incarnation says which life is meant. A worker
  // of another incarnation answers UNAVAILABLE.
  Incarnation worker_incarnation;

  TransferId transfer() const { return {request.id, attempt}; }

  // The tokens whose KV a handoff brings: the prompt and, of a request with one
  // answer, what was delivered of it. Several answers part after the prompt.
  std::vector<TokenId> history() const;
};

// Output of one leg, in order: at most one OnAccepted, then frames, then
// exactly one OnFinished, after which the sink is not touched any more.
// Prefill's frames carry the prompt's log-probabilities and token 0 of every
// answer; decode's start at index 1 after a handoff, at 0 when it prefilled
// locally or when the answers are given back at the end, all by decode. Called
// on the engine thread; must not block.
class LegSink {
 public:
  virtual ~LegSink() = default;
  virtual void OnAccepted() = 0;
  virtual void OnFrame(TokenFrame frame) = 0;
  virtual void OnFinished(const absl::Status& status) = 0;
};

}  // namespace penstock
