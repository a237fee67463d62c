#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {

// Zeroed private memory on 2 MiB pages where the system grants them; starts on
// such a boundary. Owns the mapping; movable.
class HugeBuffer {
 public:
  HugeBuffer() = default;
  // RESOURCE_EXHAUSTED, naming the size, when the system has no memory.
  static absl::StatusOr<HugeBuffer> Create(size_t bytes);
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Hands out consecutive pieces of a buffer, each on a cache line. Run once
// without memory to learn the size, then again over it.
class Carver {
 public:
  Carver() = default;
  explicit Carver(uint8_t* memory) : memory_(memory) {}

  // `count` elements of T; null while measuring.
  template <class T>
  T* Take(size_t count) {
    constexpr size_t kLine = 64;
    const size_t at = used_;
    used_ += (count * sizeof(T) + kLine - 1) / kLine * kLine;
    return memory_ == nullptr ? nullptr : reinterpret_cast<T*>(memory_ + at);
  }
  size_t used() const { return used_; }

 private:
  uint8_t* memory_ = nullptr;
  size_t used_ = 0;
};

}  // namespace penstock
