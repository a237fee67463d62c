#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"

namespace penstock {

// Checks that every conversion from the wire shares. A refusal is
// INVALID_ARGUMENT with reason INVALID_FIELD and the field's name.

// Bounds on what a peer may claim; far above what is sensible, far below what
// could overflow.
inline constexpr int kMaxWireCount = 1 << 24;   // tokens, blocks, ...
inline constexpr int kMaxWireName = 256;        // bytes of a name or address
inline constexpr int kMaxWireState = 64 << 20;  // bytes of request state
inline constexpr absl::Duration kMaxWireDuration = absl::Hours(24 * 365);

absl::Status Refuse(absl::string_view field, absl::string_view why);

// A message from its bytes. When they do not parse, the error says which
// string field is no UTF-8, if that is why.
absl::Status ParseMessage(absl::string_view bytes,
                          google::protobuf::Message* message);

// A count in [0, most].
absl::StatusOr<int> WireCount(absl::string_view field, uint64_t value,
                              int most = kMaxWireCount);

// A duration in [0, kMaxWireDuration].
absl::StatusOr<absl::Duration> WireMicros(absl::string_view field,
                                          int64_t micros);

// For what is sent: whole microseconds, clamped to what is accepted.
int64_t ToWireMicros(absl::Duration duration);

absl::Status CheckName(absl::string_view field, absl::string_view value);

}  // namespace penstock
