#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

struct EchoLoad {
  std::string server;  // "host:port"
  int streams = 0;
  int64_t messages = 0;  // in all
  absl::Duration tick;   // each stream sends one message at each
};

// Sends what a worker would send of so many tokens, and waits until all of it
// is back. UNAVAILABLE when a stream ends early.
absl::Status RunEchoLoad(const EchoLoad& load);

}  // namespace penstock
