#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/model/files/model_family.h"
#include "common/model/files/model_file.h"
#include "common/model/model_spec.h"

namespace penstock {

// An extent of a tensor's shape, by what it means.
enum class Extent {
  kHidden,
  kQuery,
  kKey,
  kValue,
  kAttended,
  kHeadDim,
  kFfn,
  kSharedFfn,
  kExperts,
  kQueryRank,
  kLatentQuery,  // queries of all heads, of latent attention
  kLatent,
  kLatentKey,
};

// Precondition: the spec has the part that the extent is of.
int64_t SizeOf(Extent extent, const ModelSpec& spec);

// Which layers have a tensor.
enum class LayersWith {
  kAll,
  kInputNorms,
  kPlainFfnNorm,   // a norm before the feed-forward and none after
  kFramedFfnNorm,  // both
  kOutputNorms,
  kSplitQkv,
  kHeadNorms,   // QkNorm::kPerHead
  kWholeNorms,  // QkNorm::kWhole
  kSplitFfn,
  kDenseFfn,
  kExperts,
  kSharedExperts,
  kLatent,
  kPlainLatentQuery,  // latent attention without a query rank
  kRankedLatentQuery,
};

bool Belongs(LayersWith layers, const ModelFamily& family,
             const ModelSpec& spec, const LayerSpec& layer);

// A tensor of a layer that files hold as the forward pass takes it: its name
// after the layer's number, in GGUF files and in Hugging Face folders, where it
// goes, its shape, and which layers have it.
struct LayerTensor {
  absl::string_view gguf, hf;
  std::variant<TensorView LayerWeights::*, TensorView LatentWeights::*,
               TensorView ExpertWeights::*>
      target;
  std::vector<Extent> shape;
  LayersWith layers = LayersWith::kAll;
  bool optional = false;  // the layer may do without
};

const std::vector<LayerTensor>& LayerTensors();

}  // namespace penstock
