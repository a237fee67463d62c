#include "common/model/utf8.h"

#include <cstddef>
#include <cstdint>

namespace penstock {
namespace {

bool InRange(uint8_t byte, uint8_t low, uint8_t high) {
  return byte >= low && byte <= high;
}

// Length of the well-formed character at the start of `text`, 0 when there is
// none. Only the second byte's range depends on the first.
size_t CharacterBytes(absl::string_view text) {
  auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = at(0);
  if (first < 0x80) return 1;
  size_t length = InRange(first, 0xC2, 0xDF)   ? 2
                  : InRange(first, 0xE0, 0xEF) ? 3
                  : InRange(first, 0xF0, 0xF4) ? 4
                                               : 0;
  if (length == 0 || text.size() < length) return 0;
  uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (!InRange(at(1), low, high)) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!InRange(at(i), 0x80, 0xBF)) return 0;
  }
  return length;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    size_t length = CharacterBytes(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace penstock
