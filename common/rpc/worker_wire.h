#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/peer/leg.h"
#include "common/peer/worker_report.h"

namespace penstock {

// Messages between router and workers, as bytes. Encoding never fails;
// decoding checks everything (INVALID_ARGUMENT names the field) and refuses a
// peer whose protocol range does not meet ours (FAILED_PRECONDITION).

std::string EncodeLegRequest(const LegRequest& request);
absl::StatusOr<LegRequest> DecodeLegRequest(absl::string_view bytes);

struct LegAccepted {};
using LegEvent = std::variant<LegAccepted, TokenFrame>;

std::string EncodeLegEvent(const LegEvent& event);
absl::StatusOr<LegEvent> DecodeLegEvent(absl::string_view bytes);

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
