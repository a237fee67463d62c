#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

// The one piece of memory that holds a worker's KV blocks. Made by the worker
// (a memfd on Linux), handed to backend and transport. `bytes` outlives both.
struct Arena {
  absl::Span<uint8_t> bytes;
  int fd = -1;  // the memfd behind it; -1: plain memory, cannot be shared
};

}  // namespace penstock
