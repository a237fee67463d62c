#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

// The least that relaying over gRPC can cost: every message of every stream of
// any method goes back as it came, unparsed, by gRPC's generic callback API and
// nothing of ours.
class EchoServer {
 public:
  // UNAVAILABLE when no port can be bound.
  static absl::StatusOr<std::unique_ptr<EchoServer>> Start();
  virtual ~EchoServer() = default;
  virtual const std::string& address() const = 0;
};

}  // namespace penstock
