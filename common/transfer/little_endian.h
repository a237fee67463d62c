#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// Integers of wire formats, whatever the host's byte order and alignment.

template <typename T>
void StoreLittleEndian(T value, uint8_t* at) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

template <typename T>
T LoadLittleEndian(const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{at[i]} << (8 * i);
  return static_cast<T>(value);
}

}  // namespace penstock
