#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace penstock {

// Element types of stored weights. Block formats and their byte layouts are
// those of the GGUF specification; quant_blocks.h spells them out.
enum class TensorType {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
};
inline constexpr int kTensorTypeCount = 15;

struct TensorTypeTraits {
  absl::string_view name;  // as in GGUF tools, e.g. "Q4_1"
  uint32_t gguf_id;        // ggml_type on disk
  int block_elements;      // elements stored together; 1 for plain types
  int block_bytes;         // bytes of one such block
};

const TensorTypeTraits& Traits(TensorType type);

// The type with this number on disk; nothing when this build cannot read it.
std::optional<TensorType> TensorTypeOfGgufId(uint32_t gguf_id);

// The type of this name, in either case ("q4_k"); nothing when there is none.
std::optional<TensorType> TensorTypeOfName(absl::string_view name);

// The name of any type that GGUF files use, readable here or not, for error
// messages; "unknown" when there is none.
absl::string_view GgufTensorTypeName(uint32_t gguf_id);

}  // namespace penstock
