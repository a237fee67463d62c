#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"

namespace penstock {

inline constexpr char kLegsMethod[] = "/penstock.v1.WorkerService/Legs";
inline constexpr char kRegisterMethod[] =
    "/penstock.v1.RouterRegistry/Register";
inline constexpr char kAttachMethod[] = "/penstock.v1.KvStore/Attach";
inline constexpr char kPairMethod[] = "/penstock.v1.HandoffService/Pair";

// A connection to one server, kept and reconnected by gRPC. Thread-safe. Pings
// find a silent partition within a few seconds.
class RpcChannel {
 public:
  // Does not connect yet.
  static std::unique_ptr<RpcChannel> Open(const std::string& address);
  virtual ~RpcChannel() = default;

  // Opens a stream; a server that cannot be reached ends it with UNAVAILABLE.
  // The handler's events are tasks of `inbox`. The stream may outlive the
  // channel.
  virtual std::shared_ptr<Stream> Start(const std::string& method,
                                        std::unique_ptr<StreamHandler> handler,
                                        std::shared_ptr<Inbox> inbox,
                                        StreamLimits limits = {}) = 0;
};

}  // namespace penstock
