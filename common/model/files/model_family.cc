#include "common/model/files/model_family.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/model/files/model_error.h"

namespace penstock {
namespace {

constexpr RopePairing kInterleaved = RopePairing::kInterleaved;

constexpr ModelFamily kFamilies[] = {
    {.gguf_name = "llama",
     .hf_name = "llama",
     .gguf_pairing = kInterleaved,
     .experts = ExpertLayout::kMixtral,
     .normalize_experts = true},
    {.gguf_name = "llama",
     .hf_name = "mistral",
     .gguf_pairing = kInterleaved,
     .full_attention_period = 1},
    {.gguf_name = "llama",
     .hf_name = "mixtral",
     .gguf_pairing = kInterleaved,
     .experts = ExpertLayout::kMixtral,
     .normalize_experts = true,
     .full_attention_period = 1},
    {.gguf_name = "smollm3",
     .hf_name = "smollm3",
     .gguf_pairing = kInterleaved,
     .no_rope_period = 4},
    {.gguf_name = "qwen2", .hf_name = "qwen2"},
    {.gguf_name = "qwen3", .hf_name = "qwen3", .qk_norm = QkNorm::kPerHead},
    {.gguf_name = "qwen3moe",
     .hf_name = "qwen3_moe",
     .qk_norm = QkNorm::kPerHead,
     .experts = ExpertLayout::kSplit,
     .normalize_experts = true},
    {.gguf_name = "gemma2",
     .hf_name = "gemma2",
     .activation = Activation::kGeluTanh,
     .output_norms = true,
     .hf_norm_offset = 1.0f,
     .root_embedding_scale = true,
     .full_attention_period = 2,
     .default_window = 4096,
     .score_cap = 50.0f,
     .logit_cap = 30.0f,
     .layers_of_wide_scale = 46},
    {.gguf_name = "gemma3",
     .hf_name = "gemma3_text",
     .activation = Activation::kGeluTanh,
     .qk_norm = QkNorm::kPerHead,
     .output_norms = true,
     .hf_norm_offset = 1.0f,
     .root_embedding_scale = true,
     .full_attention_period = 6,
     .local_rope_base = 10000.0f,
     .layers_of_wide_scale = 62},
    {.gguf_name = "phi3",
     .hf_name = "phi3",
     .fused = true,
     .full_attention_period = 1},
    {.gguf_name = "olmo2",
     .hf_name = "olmo2",
     .qk_norm = QkNorm::kWhole,
     .input_norms = false,
     .output_norms = true},
    {.gguf_name = "olmoe",
     .hf_name = "olmoe",
     .qk_norm = QkNorm::kWhole,
     .experts = ExpertLayout::kSplit},
    {.gguf_name = "granite",
     .hf_name = "granite",
     .gguf_pairing = kInterleaved,
     .scales = true},
    {.gguf_name = "granitemoe",
     .hf_name = "granitemoe",
     .gguf_pairing = kInterleaved,
     .scales = true,
     .experts = ExpertLayout::kStacked,
     .normalize_experts = true},
    {.gguf_name = "deepseek2",
     .hf_name = "deepseek_v2",
     .gguf_pairing = kInterleaved,
     .hf_pairing = kInterleaved,
     .latent = true,
     .experts = ExpertLayout::kSplit},
    {.gguf_name = "deepseek2",
     .hf_name = "deepseek_v3",
     .gguf_pairing = kInterleaved,
     .hf_pairing = kInterleaved,
     .latent = true,
     .experts = ExpertLayout::kSplit,
     .normalize_experts = true},
};

const ModelFamily* Find(absl::string_view ModelFamily::*member,
                        absl::string_view name) {
  for (const ModelFamily& family : kFamilies) {
    if (family.*member == name) return &family;
  }
  return nullptr;
}

std::string Known(absl::string_view ModelFamily::*member) {
  std::set<std::string> names;
  for (const ModelFamily& family : kFamilies) {
    names.insert(QuoteForError(family.*member));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

const ModelFamily* FamilyOfGguf(absl::string_view name) {
  return Find(&ModelFamily::gguf_name, name);
}
const ModelFamily* FamilyOfHuggingFace(absl::string_view name) {
  return Find(&ModelFamily::hf_name, name);
}
std::string KnownGgufFamilies() { return Known(&ModelFamily::gguf_name); }
std::string KnownHuggingFaceFamilies() { return Known(&ModelFamily::hf_name); }

}  // namespace penstock
