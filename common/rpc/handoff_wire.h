#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/id.h"
#include "common/peer/handoff_message.h"

namespace penstock {

// First on a handoff stream, from either side: who speaks.
struct HandoffHello {
  WorkerKey worker;
};

// One frame of a handoff stream, numbered from 1 in each direction.
struct HandoffFrame {
  uint64_t sequence = 0;
  std::variant<HandoffHello, HandoffMessage> body;
};

// Encoding never fails. Decoding checks everything: INVALID_ARGUMENT names the
// field; FAILED_PRECONDITION says that the protocol ranges do not meet.
std::string EncodeHandoffFrame(const HandoffFrame& frame);
absl::StatusOr<HandoffFrame> DecodeHandoffFrame(absl::string_view bytes);

}  // namespace penstock
