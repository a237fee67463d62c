#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/model/model_spec.h"

namespace penstock {

// How Hugging Face folders name the tensors of a mixture of experts.
enum class ExpertLayout {
  kNone,
  kMixtral,  // block_sparse_moe.experts.N.w1, w3, w2
  kSplit,    // mlp.experts.N.gate_proj, up_proj, down_proj
  kStacked,  // block_sparse_moe.input_linear (gate and up), output_linear
};

// What readers must know of a model family beyond what its files say: a row of
// a table for each name that Hugging Face gives it. A new family is a row.
struct ModelFamily {
  absl::string_view gguf_name;  // general.architecture
  absl::string_view hf_name;    // model_type
  // The first row of a GGUF name is the one for files of that name.
  RopePairing gguf_pairing = RopePairing::kHalves;
  RopePairing hf_pairing = RopePairing::kHalves;
  Activation activation = Activation::kSilu;
  QkNorm qk_norm = QkNorm::kNone;
  bool input_norms = true;    // of what attention and the feed-forward read
  bool output_norms = false;  // of what they add to the residual
  bool fused = false;         // q, k, v in one matrix; gate and up in one
  float hf_norm_offset = 0.0f;
  bool root_embedding_scale = false;  // embeddings times sqrt(hidden)
  bool scales = false;                // has Granite's four multipliers
  bool latent = false;
  ExpertLayout experts = ExpertLayout::kNone;
  bool normalize_experts = false;  // where the file does not say
  // Layers see a window, but for each layer whose number (from 1) is a multiple
  // of this; 1: all see it; 0: the family has none.
  int full_attention_period = 0;
  // Each layer whose number is a multiple of this knows no positions; 0: none.
  int no_rope_period = 0;
  // For files that do not say.
  int default_window = 0;  // where a GGUF file does not say
  float score_cap = 0.0f;
  float logit_cap = 0.0f;
  float local_rope_base = 0.0f;  // of layers with a window; 0: as the others
  // This many layers, and the score scale is 1/sqrt(hidden / heads) in GGUF
  // files, which have no key for it.
  int layers_of_wide_scale = 0;
};

// Null when this build does not know the name.
const ModelFamily* FamilyOfGguf(absl::string_view name);
const ModelFamily* FamilyOfHuggingFace(absl::string_view name);

// The known names, quoted and separated, for error messages.
std::string KnownGgufFamilies();
std::string KnownHuggingFaceFamilies();

}  // namespace penstock
