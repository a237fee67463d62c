#include "common/model/files/weight_binder.h"

#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/files/layer_tensors.h"

namespace penstock {
namespace {

// Tensors that tell a layer nothing that the spec does not.
bool MayBeLeft(absl::string_view name) {
  return name == "rope_freqs.weight" || name == "rope_factors_long.weight" ||
         name == "rope_factors_short.weight" ||
         absl::EndsWith(name, ".rotary_emb.inv_freq");
}

// Takes tensors out of the file by name, and knows in the end what was left.
class TensorTaker {
 public:
  TensorTaker(const TensorMap& tensors, const ModelSpec& spec,
              const ModelErrorMaker& errors)
      : tensors_(tensors), spec_(spec), errors_(errors) {}

  bool Has(const std::string& name) const { return tensors_.contains(name); }

  absl::StatusOr<TensorView> Take(const std::string& name,
                                  const std::vector<int64_t>& shape) {
    const std::string field = absl::StrCat("tensor ", QuoteForError(name));
    auto it = tensors_.find(name);
    if (it == tensors_.end()) {
      return errors_.Make(ModelError::kMissingTensor,
                          {.field = field,
                           .found = "no such tensor",
                           .expected = absl::StrCat("it for a model of ",
                                                    spec_.layers, " layers")});
    }
    if (it->second.shape != shape) {
      return errors_.Make(
          ModelError::kTensorShape,
          {.field = absl::StrCat(field, " shape [out, in]"),
           .found =
               absl::StrCat("[", absl::StrJoin(it->second.shape, ", "), "]"),
           .expected = absl::StrCat("[", absl::StrJoin(shape, ", "), "]")});
    }
    taken_.insert(it->first);
    return it->second;
  }

  void Ignore(const std::string& name) {
    auto it = tensors_.find(name);
    if (it != tensors_.end()) taken_.insert(it->first);
  }

  absl::Status CheckAllTaken() const {
    for (const auto& [name, tensor] : tensors_) {
      if (taken_.contains(name) || MayBeLeft(name)) continue;
      return errors_.Make(
          ModelError::kUnexpectedTensor,
          {.field = absl::StrCat("tensor ", QuoteForError(name)),
           .found = absl::StrCat("a weight that architecture ",
                                 QuoteForError(spec_.architecture),
                                 " does not use here"),
           .expected = "only tensors that the forward pass reads"});
    }
    return absl::OkStatus();
  }

 private:
  const TensorMap& tensors_;
  const ModelSpec& spec_;
  const ModelErrorMaker& errors_;
  std::set<absl::string_view> taken_;
};

// Parts of a matrix, one below the other, each of the given number of rows.
std::vector<TensorView> Split(const TensorView& matrix,
                              const std::vector<int64_t>& rows) {
  std::vector<TensorView> parts;
  int64_t first = 0;
  for (int64_t count : rows) {
    parts.push_back(SliceRows(matrix, first, count));
    first += count;
  }
  return parts;
}

class Binder {
 public:
  Binder(const TensorMap& tensors, TensorNames names, const ModelFamily& family,
         const ModelErrorMaker& errors, ModelSpec& spec)
      : taker_(tensors, spec, errors),
        gguf_(names == TensorNames::kGguf),
        family_(family),
        spec_(spec) {}

  absl::StatusOr<BoundWeights> Bind() {
    RETURN_IF_ERROR(BindEnds());
    for (int i = 0; i < spec_.layers; ++i) {
      prefix_ = absl::StrCat(gguf_ ? "blk." : "model.layers.", i, ".");
      layer_spec_ = &spec_.layer_specs[i];
      layer_ = &bound_.weights.layers.emplace_back();
      RETURN_IF_ERROR(BindTable());
      if (family_.fused) RETURN_IF_ERROR(BindFused());
      if (spec_.latent) RETURN_IF_ERROR(BindLatentHeads());
      if (layer_spec_->experts) RETURN_IF_ERROR(BindExperts());
    }
    RETURN_IF_ERROR(taker_.CheckAllTaken());
    return std::move(bound_);
  }

 private:
  // The name of a tensor of this layer.
  std::string Name(absl::string_view gguf, absl::string_view hf) const {
    return absl::StrCat(prefix_, gguf_ ? gguf : hf);
  }

  absl::Status BindEnds() {
    ModelWeights& weights = bound_.weights;
    const std::vector<int64_t> table = {spec_.vocab_size, spec_.hidden};
    ASSIGN_OR_RETURN(
        weights.token_embedding,
        taker_.Take(gguf_ ? "token_embd.weight" : "model.embed_tokens.weight",
                    table));
    ASSIGN_OR_RETURN(
        weights.output_norm,
        taker_.Take(gguf_ ? "output_norm.weight" : "model.norm.weight",
                    {spec_.hidden}));
    const std::string head = gguf_ ? "output.weight" : "lm_head.weight";
    if (gguf_) spec_.tied_head = !taker_.Has(head);
    if (spec_.tied_head) {
      weights.output = weights.token_embedding;
      taker_.Ignore(head);  // saved by some writers all the same
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(weights.output, taker_.Take(head, table));
    return absl::OkStatus();
  }

  TensorView& TargetOf(const LayerTensor& tensor) {
    if (auto* member =
            std::get_if<TensorView LayerWeights::*>(&tensor.target)) {
      return layer_->**member;
    }
    if (auto* member =
            std::get_if<TensorView LatentWeights::*>(&tensor.target)) {
      return layer_->latent.**member;
    }
    return layer_->experts.*
           std::get<TensorView ExpertWeights::*>(tensor.target);
  }

  absl::Status BindTable() {
    for (const LayerTensor& tensor : LayerTensors()) {
      if (!Belongs(tensor.layers, family_, spec_, *layer_spec_)) continue;
      const std::string name = Name(tensor.gguf, tensor.hf);
      if (tensor.optional && !taker_.Has(name)) continue;
      std::vector<int64_t> shape;
      for (Extent extent : tensor.shape) {
        shape.push_back(SizeOf(extent, spec_));
      }
      ASSIGN_OR_RETURN(TargetOf(tensor), taker_.Take(name, shape));
    }
    return absl::OkStatus();
  }

  absl::Status BindFused() {
    const std::vector<int64_t> rows = {spec_.q_width(), spec_.kv_width(),
                                       spec_.value_width()};
    ASSIGN_OR_RETURN(
        TensorView qkv,
        taker_.Take(Name("attn_qkv.weight", "self_attn.qkv_proj.weight"),
                    {rows[0] + rows[1] + rows[2], spec_.hidden}));
    const std::vector<TensorView> parts = Split(qkv, rows);
    layer_->q = parts[0];
    layer_->k = parts[1];
    layer_->v = parts[2];
    ASSIGN_OR_RETURN(
        TensorView both,
        taker_.Take(Name("ffn_up.weight", "mlp.gate_up_proj.weight"),
                    {int64_t{2} * spec_.ffn, spec_.hidden}));
    layer_->gate = SliceRows(both, 0, spec_.ffn);
    layer_->up = SliceRows(both, spec_.ffn, spec_.ffn);
    return absl::OkStatus();
  }

  // Each head's two matrices over the latent: apart in newer GGUF files, else
  // one below the other, the first then transposed.
  absl::Status BindLatentHeads() {
    const LatentAttentionSpec& latent = *spec_.latent;
    const int64_t heads = spec_.heads;
    LatentWeights& weights = layer_->latent;
    if (gguf_ && taker_.Has(Name("attn_k_b.weight", ""))) {
      ASSIGN_OR_RETURN(TensorView keys,
                       taker_.Take(Name("attn_k_b.weight", ""),
                                   {heads, latent.latent, latent.plain_dim}));
      ASSIGN_OR_RETURN(TensorView values,
                       taker_.Take(Name("attn_v_b.weight", ""),
                                   {heads, latent.value_dim, latent.latent}));
      weights.query_latent =
          Split(keys, std::vector<int64_t>(heads, latent.latent));
      weights.value_up =
          Split(values, std::vector<int64_t>(heads, latent.value_dim));
      return absl::OkStatus();
    }
    const int64_t both = latent.plain_dim + latent.value_dim;
    ASSIGN_OR_RETURN(
        TensorView stacked,
        taker_.Take(Name("attn_kv_b.weight", "self_attn.kv_b_proj.weight"),
                    {heads * both, latent.latent}));
    for (int64_t head = 0; head < heads; ++head) {
      weights.query_latent.push_back(
          Transposed(SliceRows(stacked, head * both, latent.plain_dim)));
      weights.value_up.push_back(
          SliceRows(stacked, head * both + latent.plain_dim, latent.value_dim));
    }
    return absl::OkStatus();
  }

  // In F32, which holds every type exactly.
  TensorView Transposed(const TensorView& matrix) {
    const int64_t rows = matrix.rows(), cols = matrix.cols();
    const size_t size = rows * cols * sizeof(float);
    uint8_t* bytes =
        bound_.derived
            .emplace_back(std::make_unique_for_overwrite<uint8_t[]>(size))
            .get();
    std::vector<float> row(cols);
    for (int64_t r = 0; r < rows; ++r) {
      DequantizeRow(matrix, r, absl::MakeSpan(row));
      for (int64_t c = 0; c < cols; ++c) {
        std::memcpy(bytes + (c * rows + r) * sizeof(float), &row[c],
                    sizeof(float));
      }
    }
    TensorView view;
    view.name = absl::StrCat(matrix.name, " transposed");
    view.type = TensorType::kF32;
    view.shape = {cols, rows};
    view.data = {bytes, size};
    return view;
  }

  absl::Status BindExperts() {
    ExpertWeights& experts = layer_->experts;
    const ExpertLayout layout = family_.experts;
    absl::string_view router = "mlp.gate.weight";
    if (layout == ExpertLayout::kMixtral) {
      router = "block_sparse_moe.gate.weight";
    } else if (layout == ExpertLayout::kStacked) {
      router = "block_sparse_moe.router.layer.weight";
    }
    ASSIGN_OR_RETURN(experts.router,
                     taker_.Take(Name("ffn_gate_inp.weight", router),
                                 {spec_.experts->count, spec_.hidden}));
    if (!gguf_ && layout == ExpertLayout::kStacked) return BindStacked();
    const bool mixtral = layout == ExpertLayout::kMixtral;
    RETURN_IF_ERROR(BindExpertPart("gate", mixtral ? "w1" : "gate_proj", false,
                                   experts.gate));
    RETURN_IF_ERROR(
        BindExpertPart("up", mixtral ? "w3" : "up_proj", false, experts.up));
    return BindExpertPart("down", mixtral ? "w2" : "down_proj", true,
                          experts.down);
  }

  // One of an expert's matrices, for all experts: stacked in GGUF files, but
  // for old ones, and apart in folders.
  absl::Status BindExpertPart(absl::string_view gguf, absl::string_view hf,
                              bool down, std::vector<TensorView>& out) {
    const ExpertSpec& experts = *spec_.experts;
    const int64_t rows = down ? spec_.hidden : experts.ffn;
    const int64_t cols = down ? experts.ffn : spec_.hidden;
    const std::string stack =
        absl::StrCat(prefix_, "ffn_", gguf, "_exps.weight");
    const std::string first = absl::StrCat(prefix_, "ffn_", gguf, ".0.weight");
    if (gguf_ && !taker_.Has(first)) {
      ASSIGN_OR_RETURN(TensorView all,
                       taker_.Take(stack, {experts.count, rows, cols}));
      out = Split(all, std::vector<int64_t>(experts.count, rows));
      return absl::OkStatus();
    }
    absl::string_view module =
        family_.experts == ExpertLayout::kMixtral ? "block_sparse_moe" : "mlp";
    for (int e = 0; e < experts.count; ++e) {
      ASSIGN_OR_RETURN(
          out.emplace_back(),
          taker_.Take(
              Name(absl::StrCat("ffn_", gguf, ".", e, ".weight"),
                   absl::StrCat(module, ".experts.", e, ".", hf, ".weight")),
              {rows, cols}));
    }
    return absl::OkStatus();
  }

  absl::Status BindStacked() {
    const ExpertSpec& experts = *spec_.experts;
    ExpertWeights& weights = layer_->experts;
    ASSIGN_OR_RETURN(
        TensorView input,
        taker_.Take(
            absl::StrCat(prefix_, "block_sparse_moe.input_linear", ".weight"),
            {experts.count, int64_t{2} * experts.ffn, spec_.hidden}));
    ASSIGN_OR_RETURN(
        TensorView output,
        taker_.Take(
            absl::StrCat(prefix_, "block_sparse_moe.output_linear", ".weight"),
            {experts.count, spec_.hidden, experts.ffn}));
    for (int64_t e = 0; e < experts.count; ++e) {
      const int64_t at = e * 2 * experts.ffn;
      weights.gate.push_back(SliceRows(input, at, experts.ffn));
      weights.up.push_back(SliceRows(input, at + experts.ffn, experts.ffn));
      weights.down.push_back(SliceRows(output, e * spec_.hidden, spec_.hidden));
    }
    return absl::OkStatus();
  }

  TensorTaker taker_;
  const bool gguf_;
  const ModelFamily& family_;
  ModelSpec& spec_;
  BoundWeights bound_;
  // Of the layer being bound.
  std::string prefix_;
  const LayerSpec* layer_spec_ = nullptr;
  LayerWeights* layer_ = nullptr;
};

}  // namespace

absl::StatusOr<BoundWeights> BindWeights(const TensorMap& tensors,
                                         TensorNames names,
                                         const ModelFamily& family,
                                         const ModelErrorMaker& errors,
                                         ModelSpec& spec) {
  return Binder(tensors, names, family, errors, spec).Bind();
}

}  // namespace penstock
