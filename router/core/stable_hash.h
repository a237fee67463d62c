#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock {

// FNV-1a: the same in every run and on every machine, unlike absl::Hash. Not
// for what an attacker may choose to collide.
inline uint64_t StableHash(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace penstock
