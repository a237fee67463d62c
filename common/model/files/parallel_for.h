#pragma once

#include <cstdint>
#include <functional>

namespace penstock {

// Calls body(0) to body(count - 1), each once, in any order and on any threads,
// and returns when all have returned: how code that knows no threads asks for
// them.
using ParallelFor = std::function<void(
    int64_t count, const std::function<void(int64_t index)>& body)>;

// One after another, on the caller's thread.
inline void SerialFor(int64_t count,
                      const std::function<void(int64_t index)>& body) {
  for (int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace penstock
