#pragma once

#include "absl/strings/string_view.h"

namespace penstock {

// The pattern that a ByteLevel pre-tokenizer has built in: GPT-2's.
inline constexpr absl::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)"
    R"(|\s+(?!\S)|\s+)";

}  // namespace penstock
