#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/peer/worker_report.h"

namespace penstock {

// What a worker and a router tell each other beside legs, as bytes. Encoding
// never fails; decoding checks everything (INVALID_ARGUMENT names the field)
// and refuses a peer whose protocol range does not meet ours
// (FAILED_PRECONDITION).

// Worker -> router. The first is a WorkerInfo.
using CacheEvents = std::vector<CacheEvent>;
using WorkerMessage =
    std::variant<WorkerInfo, WorkerLoad, CacheEvents, CacheSnapshot>;

std::string EncodeWorkerMessage(const WorkerMessage& message);
absl::StatusOr<WorkerMessage> DecodeWorkerMessage(absl::string_view bytes);

// Router -> worker. The first is a Welcome.
struct Welcome {};
// Events up to and including `sequence` are applied.
struct CacheAck {
  uint64_t sequence = 0;
};
// Asks for every event from `from_sequence` on; 0: for a snapshot.
struct CacheReplay {
  uint64_t from_sequence = 0;
};
using RouterMessage = std::variant<Welcome, CacheAck, CacheReplay>;

std::string EncodeRouterMessage(const RouterMessage& message);
absl::StatusOr<RouterMessage> DecodeRouterMessage(absl::string_view bytes);

}  // namespace penstock
