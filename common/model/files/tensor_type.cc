#include "common/model/files/tensor_type.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "common/base/check.h"

namespace penstock {
namespace {

// Indexed by TensorType. A new type is a row here and a block in
// quant_blocks.h.
constexpr TensorTypeTraits kTraits[] = {
    {"F32", 0, 1, 4},       {"F16", 1, 1, 2},       {"BF16", 30, 1, 2},
    {"Q4_0", 2, 32, 18},    {"Q4_1", 3, 32, 20},    {"Q5_0", 6, 32, 22},
    {"Q5_1", 7, 32, 24},    {"Q8_0", 8, 32, 34},    {"Q2_K", 10, 256, 84},
    {"Q3_K", 11, 256, 110}, {"Q4_K", 12, 256, 144}, {"Q5_K", 13, 256, 176},
    {"Q6_K", 14, 256, 210}, {"IQ4_NL", 20, 32, 18}, {"IQ4_XS", 23, 256, 136},
};
static_assert(std::size(kTraits) == static_cast<size_t>(kTensorTypeCount));

// Names of types that other programs write and this build cannot read.
struct ForeignType {
  uint32_t gguf_id;
  absl::string_view name;
};
constexpr ForeignType kForeign[] = {
    {9, "Q8_1"},     {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"},   {22, "IQ2_S"},
    {24, "I8"},      {25, "I16"},   {26, "I32"},     {27, "I64"},
    {28, "F64"},     {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},
    {39, "MXFP4"},
};

}  // namespace

const TensorTypeTraits& Traits(TensorType type) {
  CHECK(static_cast<int>(type) >= 0 &&
        static_cast<int>(type) < kTensorTypeCount);
  return kTraits[static_cast<size_t>(type)];
}

std::optional<TensorType> TensorTypeOfGgufId(uint32_t gguf_id) {
  for (int i = 0; i < kTensorTypeCount; ++i) {
    if (kTraits[i].gguf_id == gguf_id) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

std::optional<TensorType> TensorTypeOfName(absl::string_view name) {
  for (int i = 0; i < kTensorTypeCount; ++i) {
    if (absl::EqualsIgnoreCase(kTraits[i].name, name)) {
      return static_cast<TensorType>(i);
    }
  }
  return std::nullopt;
}

absl::string_view GgufTensorTypeName(uint32_t gguf_id) {
  if (auto type = TensorTypeOfGgufId(gguf_id)) return Traits(*type).name;
  auto it = std::find_if(
      std::begin(kForeign), std::end(kForeign),
      [&](const ForeignType& foreign) { return foreign.gguf_id == gguf_id; });
  return it == std::end(kForeign) ? "unknown" : it->name;
}

}  // namespace penstock
