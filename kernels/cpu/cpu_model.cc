#include "kernels/cpu/cpu_model.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "kernels/cpu/model_packer.h"

namespace penstock {
namespace {

constexpr int kMostWidth = 1 << 20;

absl::Status CheckMultiple(absl::string_view field, int value, int unit,
                           int most = kMostWidth) {
  if (value > 0 && value % unit == 0 && value <= most) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      field, " is ", value, "; the CPU backend takes multiples of ", unit,
      " up to ", most));
}

absl::Status CheckLatent(const LatentAttentionSpec& latent) {
  RETURN_IF_ERROR(CheckMultiple("latent size", latent.latent, 32));
  RETURN_IF_ERROR(CheckMultiple("unrotated head size", latent.plain_dim, 32));
  RETURN_IF_ERROR(CheckMultiple("rotated head size", latent.rotated_dim, 16));
  RETURN_IF_ERROR(CheckMultiple("head's value size", latent.value_dim, 16));
  if (latent.query_rank == 0) return absl::OkStatus();
  return CheckMultiple("query rank", latent.query_rank, 32);
}

absl::Status CheckWidths(const ModelSpec& spec) {
  RETURN_IF_ERROR(CheckMultiple("hidden size", spec.hidden, 32));
  RETURN_IF_ERROR(CheckMultiple("head size", spec.head_dim, 16, kMaxHeadDim));
  RETURN_IF_ERROR(CheckMultiple("value size", spec.value_dim, 16));
  RETURN_IF_ERROR(
      CheckMultiple("attention output size", spec.attended_width(), 32));
  const int rotated =
      spec.latent.has_value() ? spec.latent->rotated_dim : spec.head_dim;
  for (const RopeSpec& rope : spec.ropes) {
    RETURN_IF_ERROR(
        CheckMultiple("rotary dimensions", rope.dimensions, 2, rotated));
  }
  bool dense = false;
  for (const LayerSpec& layer : spec.layer_specs) dense |= !layer.experts;
  if (dense) RETURN_IF_ERROR(CheckMultiple("feed-forward size", spec.ffn, 32));
  if (spec.latent.has_value()) RETURN_IF_ERROR(CheckLatent(*spec.latent));
  if (!spec.experts.has_value()) return absl::OkStatus();
  if (spec.experts->shared_ffn > 0) {
    RETURN_IF_ERROR(CheckMultiple("shared expert's feed-forward size",
                                  spec.experts->shared_ffn, 32));
  }
  return CheckMultiple("experts' feed-forward size", spec.experts->ffn, 32);
}

void AddLatent(const LatentWeights& from, const ModelSpec& spec,
               const RopeSpec* rope, ModelPacker& packer, CpuLatent& to) {
  const LatentAttentionSpec& latent = *spec.latent;
  packer.AddMatrix(from.query_down, &to.query_down);
  packer.AddVector(from.query_norm, spec.norm_offset, &to.query_norm);
  packer.AddMatrix(from.query_up, &to.query_up, {},
                   {latent.query_dim(), latent.plain_dim, rope});
  packer.AddMatrix(from.kv_down, &to.kv_down, {},
                   {latent.latent + latent.rotated_dim, latent.latent, rope});
  packer.AddVector(from.kv_norm, spec.norm_offset, &to.kv_norm);
  to.query_latent.resize(from.query_latent.size());
  to.value_up.resize(from.value_up.size());
  for (size_t head = 0; head < to.query_latent.size(); ++head) {
    packer.AddMatrix(from.query_latent[head], &to.query_latent[head]);
    packer.AddMatrix(from.value_up[head], &to.value_up[head]);
  }
}

void AddExperts(const ExpertWeights& from, ModelPacker& packer,
                CpuExperts& to) {
  packer.AddFloatMatrix(from.router, &to.router);
  if (from.choice_bias.present()) {
    to.choice_bias.resize(from.choice_bias.cols());
    DequantizeRow(from.choice_bias, 0, absl::MakeSpan(to.choice_bias));
  }
  to.gate_up.resize(from.gate.size());
  to.down.resize(from.down.size());
  for (size_t expert = 0; expert < from.gate.size(); ++expert) {
    packer.AddGated(from.gate[expert], from.up[expert], &to.gate_up[expert]);
    packer.AddMatrix(from.down[expert], &to.down[expert]);
  }
  packer.AddGated(from.shared_gate, from.shared_up, &to.shared_gate_up);
  packer.AddMatrix(from.shared_down, &to.shared_down);
}

void AddLayer(const LayerWeights& from, const LayerSpec& layer,
              const ModelSpec& spec, ModelPacker& packer, CpuLayer& to) {
  const RopeSpec* rope = layer.rope < 0 ? nullptr : &spec.ropes[layer.rope];
  const HeadOrder heads = {spec.head_dim, 0, rope};
  HeadOrder queries = heads;
  if (spec.latent.has_value()) {
    queries = {spec.latent->query_dim(), spec.latent->plain_dim, rope};
    AddLatent(from.latent, spec, rope, packer, to.latent);
  }
  packer.AddVector(from.attention_norm, spec.norm_offset, &to.attention_norm);
  packer.AddMatrix(from.q, &to.query, from.q_bias, queries);
  packer.AddMatrix(from.k, &to.key, from.k_bias, heads);
  packer.AddMatrix(from.v, &to.value, from.v_bias);
  packer.AddVector(from.q_norm, spec.norm_offset, &to.query_norm, heads);
  packer.AddVector(from.k_norm, spec.norm_offset, &to.key_norm, heads);
  packer.AddMatrix(from.o, &to.output, from.o_bias);
  packer.AddVector(from.attention_post_norm, spec.norm_offset,
                   &to.attention_post_norm);
  packer.AddVector(from.ffn_norm, spec.norm_offset, &to.ffn_norm);
  packer.AddVector(from.ffn_post_norm, spec.norm_offset, &to.ffn_post_norm);
  if (layer.experts) {
    AddExperts(from.experts, packer, to.experts);
  } else {
    packer.AddGated(from.gate, from.up, &to.gate_up);
    packer.AddMatrix(from.down, &to.down);
  }
}

}  // namespace

absl::StatusOr<InputPrecision> ParsePrecision(absl::string_view name) {
  if (name == "fast") return InputPrecision::Fast();
  if (name == "default") return InputPrecision();
  if (name == "exact") return InputPrecision::Exact();
  return absl::InvalidArgumentError(
      absl::StrCat("precision is \"", name, "\"; use fast, default or exact"));
}

absl::StatusOr<std::unique_ptr<CpuModel>> CpuModel::Create(
    const ModelFile* file, const InputPrecision& precision, ThreadPool* pool,
    const std::string& cache) {
  const ModelSpec& spec = file->spec();
  RETURN_IF_ERROR(CheckWidths(spec));
  std::unique_ptr<CpuModel> model(new CpuModel(file, precision));
  const ModelWeights& weights = file->weights();
  model->layers_.resize(spec.layers);
  ModelPacker packer(precision.bfloats);
  for (int i = 0; i < spec.layers; ++i) {
    AddLayer(weights.layers[i], spec.layer_specs[i], spec, packer,
             model->layers_[i]);
  }
  packer.AddVector(weights.output_norm, spec.norm_offset, &model->output_norm_);
  packer.AddMatrix(weights.output, &model->head_);

  Carver measure;
  packer.LayOut(measure);
  auto place = [&packer](const uint8_t* data) {
    // Views are read-only; Run alone writes, while there is something to.
    Carver carver(const_cast<uint8_t*>(data));
    packer.LayOut(carver);
  };
  ASSIGN_OR_RETURN(model->memory_,
                   PackedWeights::Create({.bytes = measure.used(),
                                          .content = spec.content.value(),
                                          .layout = packer.LayoutId(),
                                          .folder = cache},
                                         pool, [&](uint8_t* data) {
                                           place(data);
                                           packer.Run(pool);
                                         }));
  place(model->memory_.data());
  return model;
}

}  // namespace penstock
