#pragma once

#include <memory>
#include <string>

#include "common/peer/leg.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"

namespace penstock {

// A router's legs at one worker, as streams of their own, although they travel
// over one gRPC stream. It is opened with the first leg, and anew with the next
// one after it broke. On the loop of `inbox` only.
class LegLink {
 public:
  // Does not connect yet.
  static std::unique_ptr<LegLink> Open(const std::string& address,
                                       std::shared_ptr<Inbox> inbox);
  // Legs that are open go on.
  virtual ~LegLink() = default;

  // Begins a leg with an encoded LegRequest; the handler gets encoded
  // LegEvents. A worker that cannot be reached, or is lost, ends it with
  // UNAVAILABLE. The stream takes nothing but Close; with an error, that
  // cancels the leg, which ends at once.
  virtual std::shared_ptr<Stream> Start(
      LegKind kind, std::string request,
      std::unique_ptr<StreamHandler> handler) = 0;
};

}  // namespace penstock
