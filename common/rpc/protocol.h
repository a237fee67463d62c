#pragma once

#include <cstdint>

namespace penstock {

// Versions of a family of control messages that a side speaks.
struct ProtocolRange {
  uint32_t min = 0;
  uint32_t max = 0;
  friend bool operator==(ProtocolRange, ProtocolRange) = default;
};

// What this build speaks: legs, registration and handoff alike.
inline constexpr ProtocolRange kProtocol{1, 1};

// Some version that both speak.
constexpr bool Overlap(ProtocolRange a, ProtocolRange b) {
  return a.min <= b.max && b.min <= a.max;
}

}  // namespace penstock
