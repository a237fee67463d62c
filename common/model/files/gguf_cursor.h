#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/files/model_error.h"

namespace penstock {

// Decodes a little-endian number. Precondition: bytes.size() >= sizeof(T).
template <typename T>
T LoadLittleEndian(absl::Span<const uint8_t> bytes) {
  static_assert(std::is_arithmetic_v<T>);
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                "weights are used in place, so the host's order must match");
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// A position in the bytes of a file; nothing is read past the end. `field`
// names what is being read, for the error. Single-threaded; both arguments of
// the constructor must outlive it.
class GgufCursor {
 public:
  GgufCursor(absl::Span<const uint8_t> file, const ModelErrorMaker& errors)
      : file_(file), errors_(errors) {}

  uint64_t offset() const { return offset_; }
  uint64_t remaining() const { return file_.size() - offset_; }

  // kTruncated when fewer than `length` bytes are left.
  absl::StatusOr<absl::Span<const uint8_t>> Bytes(uint64_t length,
                                                  absl::string_view field);
  template <typename T>
  absl::StatusOr<T> Number(absl::string_view field) {
    auto bytes = Bytes(sizeof(T), field);
    if (!bytes.ok()) return std::move(bytes).status();
    return LoadLittleEndian<T>(*bytes);
  }
  // A 64-bit length and as many bytes. kTruncated, kStringLength.
  absl::StatusOr<absl::string_view> String(absl::string_view field);

 private:
  absl::Span<const uint8_t> file_;
  const ModelErrorMaker& errors_;
  uint64_t offset_ = 0;
};

}  // namespace penstock
