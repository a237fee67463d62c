#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/env/random.h"
#include "common/rpc/server.h"
#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"
#include "router/core/router_core.h"
#include "router/server/request_encoder.h"

namespace penstock {

// The Inference service: every running Generate call, from its bytes to its
// last frame. The router loop's own; encoding runs on the encoder's loop.
class InferenceCalls {
 public:
  // All outlive the calls.
  struct Ports {
    RouterCore* core = nullptr;
    const RequestEncoder* encoder = nullptr;
    RouterProbe* probe = nullptr;  // hears of what never reaches the core
    Random* random = nullptr;      // for request ids that are absent
    std::shared_ptr<Inbox> loop;
    std::shared_ptr<Inbox> encoder_loop;
    int max_calls = 0;  // running, queued and being encoded
    size_t max_request_bytes = 0;
  };
  explicit InferenceCalls(Ports ports) : ports_(std::move(ports)) {}

  // kInvalidField names the limit. For requests of every method; any thread.
  absl::Status CheckSize(absl::string_view request) const;

  // The methods of the service.
  std::unique_ptr<StreamHandler> Generate(const CallInfo& info,
                                          std::string request,
                                          std::shared_ptr<Stream> stream);
  absl::StatusOr<std::string> GetModelInfo(absl::string_view request) const;
  absl::StatusOr<std::string> Abort(absl::string_view request);

 private:
  class Call;

  absl::Status Reject(const absl::Status& status);
  void Encoded(uint64_t call, absl::StatusOr<ClientRequest> request);

  const Ports ports_;
  uint64_t next_call_ = 1;
  std::map<uint64_t, Call*> calls_;  // owned by their streams
};

}  // namespace penstock
