#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/files/gguf_model.h"

namespace penstock {
namespace {

enum class Extent { kHidden, kQuery, kKeyValue, kFfn, kVocabulary };

int64_t SizeOf(Extent extent, const ModelSpec& spec) {
  switch (extent) {
    case Extent::kHidden:
      return spec.hidden;
    case Extent::kQuery:
      return spec.q_width();
    case Extent::kKeyValue:
      return spec.kv_width();
    case Extent::kFfn:
      return spec.ffn;
    case Extent::kVocabulary:
      return spec.vocab_size;
  }
  return 0;
}

// A tensor that each layer has: its name in the file, where it goes, and its
// shape.
struct LayerTensor {
  absl::string_view suffix;
  TensorView LayerWeights::*member;
  std::vector<Extent> shape;
};

const std::vector<LayerTensor>& LayerTensors() {
  using enum Extent;
  static const auto& tensors = *new std::vector<LayerTensor>{
      {"attn_norm", &LayerWeights::attention_norm, {kHidden}},
      {"attn_q", &LayerWeights::q, {kQuery, kHidden}},
      {"attn_k", &LayerWeights::k, {kKeyValue, kHidden}},
      {"attn_v", &LayerWeights::v, {kKeyValue, kHidden}},
      {"attn_output", &LayerWeights::o, {kHidden, kQuery}},
      {"ffn_norm", &LayerWeights::ffn_norm, {kHidden}},
      {"ffn_gate", &LayerWeights::gate, {kFfn, kHidden}},
      {"ffn_up", &LayerWeights::up, {kFfn, kHidden}},
      {"ffn_down", &LayerWeights::down, {kHidden, kFfn}},
  };
  return tensors;
}

// Takes tensors out of the file by name, and knows in the end what was left.
class Binder {
 public:
  Binder(const GgufReader& reader, const ModelSpec& spec)
      : reader_(reader), spec_(spec) {}

  absl::StatusOr<TensorView> Take(const std::string& name,
                                  const std::vector<Extent>& extents) {
    std::string field = absl::StrCat("tensor ", QuoteForError(name));
    const TensorView* tensor = reader_.FindTensor(name);
    if (tensor == nullptr) {
      return reader_.errors().Make(
          GgufError::kMissingTensor,
          {.field = field,
           .found = "no such tensor",
           .expected =
               absl::StrCat("it for a model of ", spec_.layers, " layers")});
    }
    std::vector<int64_t> shape;
    for (Extent extent : extents) shape.push_back(SizeOf(extent, spec_));
    if (tensor->shape != shape) {
      return reader_.errors().Make(
          GgufError::kTensorShape,
          {.field = absl::StrCat(field, " shape [out, in]"),
           .found = absl::StrCat("[", absl::StrJoin(tensor->shape, ", "), "]"),
           .expected = absl::StrCat("[", absl::StrJoin(shape, ", "), "]")});
    }
    taken_.insert(tensor->name);
    return *tensor;
  }

  absl::Status CheckAllTaken() const {
    for (const auto& [name, tensor] : reader_.tensors()) {
      if (taken_.contains(tensor.name)) continue;
      return reader_.errors().Make(
          GgufError::kUnexpectedTensor,
          {.field = absl::StrCat("tensor ", QuoteForError(name)),
           .found = absl::StrCat("a weight that architecture ",
                                 QuoteForError(spec_.architecture),
                                 " does not use here"),
           .expected = "only tensors that the forward pass reads"});
    }
    return absl::OkStatus();
  }

 private:
  const GgufReader& reader_;
  const ModelSpec& spec_;
  std::set<absl::string_view> taken_;
};

}  // namespace

absl::StatusOr<ModelWeights> BindGgufWeights(const GgufReader& reader,
                                             ModelSpec& spec) {
  using enum Extent;
  Binder binder(reader, spec);
  ModelWeights weights;
  ASSIGN_OR_RETURN(weights.token_embedding,
                   binder.Take("token_embd.weight", {kVocabulary, kHidden}));
  ASSIGN_OR_RETURN(weights.output_norm,
                   binder.Take("output_norm.weight", {kHidden}));
  spec.tied_head = reader.FindTensor("output.weight") == nullptr;
  if (spec.tied_head) {
    weights.output = weights.token_embedding;
  } else {
    ASSIGN_OR_RETURN(weights.output,
                     binder.Take("output.weight", {kVocabulary, kHidden}));
  }
  for (int i = 0; i < spec.layers; ++i) {
    LayerWeights layer;
    for (const LayerTensor& tensor : LayerTensors()) {
      ASSIGN_OR_RETURN(
          layer.*tensor.member,
          binder.Take(absl::StrCat("blk.", i, ".", tensor.suffix, ".weight"),
                      tensor.shape));
    }
    weights.layers.push_back(std::move(layer));
  }
  RETURN_IF_ERROR(binder.CheckAllTaken());
  return weights;
}

}  // namespace penstock
