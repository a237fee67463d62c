#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/id.h"

namespace penstock {

// A worker that computes nothing: it registers with a router for both roles and
// gives every running leg one token at each tick. What a router costs is seen
// when the workers cost nothing that waits. Thread-safe.
class FakeWorker {
 public:
  struct Options {
    std::string name;
    std::string router;           // "host:port"
    ContentId content;            // the router's model's
    absl::Duration tick;          // > 0
    std::string text = " token";  // of each token
  };
  // UNAVAILABLE when no port can be bound.
  static absl::StatusOr<std::unique_ptr<FakeWorker>> Start(
      const Options& options);
  virtual ~FakeWorker() = default;

  // The router has welcomed it.
  virtual bool registered() const = 0;
};

}  // namespace penstock
