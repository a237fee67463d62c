#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {

// The printable stand-ins that byte-level vocabularies use for the 256 bytes:
// the visible characters of Latin-1 stand for themselves, every other byte, in
// order, for U+0100 and up. A constant; safe from any thread.
class ByteAlphabet {
 public:
  ByteAlphabet();

  // The character, as UTF-8, that stands for `byte`.
  const std::string& Character(uint8_t byte) const { return characters_[byte]; }

  // The bytes that `token` spells; nullopt when it holds a character outside
  // the alphabet or is not UTF-8.
  absl::optional<std::string> Decode(absl::string_view token) const;

 private:
  static constexpr int kCodePoints = 256 + 68;

  std::array<std::string, 256> characters_;
  std::array<int16_t, kCodePoints> bytes_;  // by code point; -1: outside
};

}  // namespace penstock
