// The tiny models of tests/data/families: both formats of each give the same
// specification and the same weights.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/mapped_file.h"
#include "common/model/files/model_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr char kFamilies[] = PENSTOCK_TEST_DATA "/families/";

struct Opened {
  std::vector<MappedFile> files;
  ModelContent content;
};

Opened OpenGguf(const std::string& family) {
  const std::string path = absl::StrCat(kFamilies, family, "/model.gguf");
  auto file = MappedFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  auto content = ReadGgufModel(file->bytes(), path);
  EXPECT_TRUE(content.ok()) << content.status();
  Opened opened;
  opened.files.push_back(*std::move(file));
  if (content.ok()) opened.content = *std::move(content);
  return opened;
}

// `config`: the file's name; older versions of transformers wrote others.
Opened OpenFolder(const std::string& family,
                  const std::string& config = "config.json") {
  Opened opened;
  auto folder = OpenModelFolder(absl::StrCat(kFamilies, family));
  EXPECT_TRUE(folder.ok()) << folder.status();
  auto other = MappedFile::Open(absl::StrCat(kFamilies, family, "/", config));
  EXPECT_TRUE(other.ok()) << other.status();
  folder->model.config.bytes = other->bytes();
  auto content = ReadHuggingFaceModel(folder->model);
  EXPECT_TRUE(content.ok()) << content.status();
  opened.files = std::move(folder->files);
  opened.files.push_back(*std::move(other));
  if (content.ok()) opened.content = *std::move(content);
  return opened;
}

void ExpectSameRope(const RopeSpec& a, const RopeSpec& b, int context) {
  EXPECT_EQ(a.dimensions, b.dimensions);
  EXPECT_FLOAT_EQ(a.magnitude, b.magnitude);
  const std::vector<double> speeds = RopeSpeeds(a, context);
  const std::vector<double> others = RopeSpeeds(b, context);
  ASSERT_EQ(speeds.size(), others.size());
  for (size_t i = 0; i < speeds.size(); ++i) {
    EXPECT_NEAR(speeds[i] / others[i], 1.0, 1e-6) << i;
  }
}

void ExpectSameExperts(const ModelSpec& a, const ModelSpec& b) {
  ASSERT_EQ(a.experts.has_value(), b.experts.has_value());
  if (!a.experts) return;
  EXPECT_EQ(a.experts->count, b.experts->count);
  EXPECT_EQ(a.experts->used, b.experts->used);
  EXPECT_EQ(a.experts->ffn, b.experts->ffn);
  EXPECT_EQ(a.experts->shared_ffn, b.experts->shared_ffn);
  EXPECT_EQ(a.experts->gating, b.experts->gating);
  EXPECT_EQ(a.experts->normalize, b.experts->normalize);
  EXPECT_EQ(a.experts->scale, b.experts->scale);
  EXPECT_EQ(a.experts->groups, b.experts->groups);
  EXPECT_EQ(a.experts->groups_used, b.experts->groups_used);
  EXPECT_EQ(a.experts->group_score, b.experts->group_score);
}

void ExpectSameLatent(const ModelSpec& a, const ModelSpec& b) {
  ASSERT_EQ(a.latent.has_value(), b.latent.has_value());
  if (!a.latent) return;
  EXPECT_EQ(a.latent->query_rank, b.latent->query_rank);
  EXPECT_EQ(a.latent->latent, b.latent->latent);
  EXPECT_EQ(a.latent->plain_dim, b.latent->plain_dim);
  EXPECT_EQ(a.latent->rotated_dim, b.latent->rotated_dim);
  EXPECT_EQ(a.latent->value_dim, b.latent->value_dim);
}

void ExpectSameSpec(const ModelSpec& a, const ModelSpec& b) {
  EXPECT_EQ(a.architecture, b.architecture);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.layers, b.layers);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.heads, b.heads);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.value_dim, b.value_dim);
  EXPECT_EQ(a.ffn, b.ffn);
  EXPECT_EQ(a.context_length, b.context_length);
  EXPECT_FLOAT_EQ(a.norm_epsilon, b.norm_epsilon);
  EXPECT_EQ(a.tied_head, b.tied_head);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.qk_norm, b.qk_norm);
  EXPECT_FLOAT_EQ(a.score_scale, b.score_scale);
  EXPECT_EQ(a.score_cap, b.score_cap);
  EXPECT_EQ(a.logit_cap, b.logit_cap);
  EXPECT_FLOAT_EQ(a.embedding_scale, b.embedding_scale);
  EXPECT_EQ(a.residual_scale, b.residual_scale);
  EXPECT_FLOAT_EQ(a.logit_scale, b.logit_scale);
  ExpectSameExperts(a, b);
  ExpectSameLatent(a, b);
  ASSERT_EQ(a.ropes.size(), b.ropes.size());
  for (size_t i = 0; i < a.ropes.size(); ++i) {
    ExpectSameRope(a.ropes[i], b.ropes[i], a.context_length);
  }
  ASSERT_EQ(a.layer_specs.size(), b.layer_specs.size());
  for (size_t i = 0; i < a.layer_specs.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("layer ", i));
    EXPECT_EQ(a.layer_specs[i].window, b.layer_specs[i].window);
    EXPECT_EQ(a.layer_specs[i].rope, b.layer_specs[i].rope);
    EXPECT_EQ(a.layer_specs[i].experts, b.layer_specs[i].experts);
  }
}

// `offset`: what the first has less than the second (gains of norms).
void ExpectSameTensor(const TensorView& a, const TensorView& b, float offset) {
  SCOPED_TRACE(absl::StrCat(a.name, " and ", b.name));
  ASSERT_EQ(a.present(), b.present());
  if (!a.present()) return;
  ASSERT_EQ(a.shape, b.shape);
  std::vector<float> row(a.cols()), other(b.cols());
  for (int64_t r = 0; r < a.rows(); ++r) {
    DequantizeRow(a, r, absl::MakeSpan(row));
    DequantizeRow(b, r, absl::MakeSpan(other));
    for (int64_t c = 0; c < a.cols(); ++c) {
      ASSERT_EQ(row[c] + offset, other[c]) << r << " " << c;
    }
  }
}

// All but q and k, whose rows GGUF orders anew in some families.
void ExpectSameWeights(const ModelContent& folder, const ModelContent& gguf) {
  const float norm = folder.spec.norm_offset;
  ExpectSameTensor(folder.weights.output, gguf.weights.output, 0);
  ExpectSameTensor(folder.weights.output_norm, gguf.weights.output_norm, norm);
  ASSERT_EQ(folder.weights.layers.size(), gguf.weights.layers.size());
  for (size_t i = 0; i < gguf.weights.layers.size(); ++i) {
    const LayerWeights& a = folder.weights.layers[i];
    const LayerWeights& b = gguf.weights.layers[i];
    ExpectSameTensor(a.attention_norm, b.attention_norm, norm);
    ExpectSameTensor(a.attention_post_norm, b.attention_post_norm, norm);
    ExpectSameTensor(a.ffn_norm, b.ffn_norm, norm);
    ExpectSameTensor(a.ffn_post_norm, b.ffn_post_norm, norm);
    ExpectSameTensor(a.v, b.v, 0);
    ExpectSameTensor(a.v_bias, b.v_bias, 0);
    ExpectSameTensor(a.o, b.o, 0);
    ExpectSameTensor(a.gate, b.gate, 0);
    ExpectSameTensor(a.up, b.up, 0);
    ExpectSameTensor(a.down, b.down, 0);
    ExpectSameTensor(a.experts.router, b.experts.router, 0);
    ExpectSameTensor(a.experts.choice_bias, b.experts.choice_bias, 0);
    ExpectSameTensor(a.experts.shared_down, b.experts.shared_down, 0);
    ASSERT_EQ(a.experts.up.size(), b.experts.up.size());
    for (size_t e = 0; e < a.experts.up.size(); ++e) {
      ExpectSameTensor(a.experts.gate[e], b.experts.gate[e], 0);
      ExpectSameTensor(a.experts.up[e], b.experts.up[e], 0);
      ExpectSameTensor(a.experts.down[e], b.experts.down[e], 0);
    }
    ExpectSameTensor(a.latent.kv_down, b.latent.kv_down, 0);
    ASSERT_EQ(a.latent.value_up.size(), b.latent.value_up.size());
    for (size_t h = 0; h < a.latent.value_up.size(); ++h) {
      ExpectSameTensor(a.latent.query_latent[h], b.latent.query_latent[h], 0);
      ExpectSameTensor(a.latent.value_up[h], b.latent.value_up[h], 0);
    }
  }
}

class FamilyFilesTest : public testing::TestWithParam<const char*> {};

TEST_P(FamilyFilesTest, FolderAndGgufAreTheSameModel) {
  const Opened folder = OpenFolder(GetParam());
  const Opened gguf = OpenGguf(GetParam());
  ExpectSameSpec(folder.content.spec, gguf.content.spec);
  ExpectSameWeights(folder.content, gguf.content);
}

INSTANTIATE_TEST_SUITE_P(
    All, FamilyFilesTest,
    testing::Values("deepseek-v2-lite", "deepseek-v3", "gemma3", "granite",
                    "granitemoe", "llama-biased", "llama-dynamic",
                    "llama-linear", "llama-yarn", "llama2", "llama3.1",
                    "mixtral", "olmo2", "olmoe", "phi3", "phi3-longrope",
                    "phi3-shortrope", "qwen2", "qwen3", "qwen3moe", "smollm2",
                    "smollm3", "tinyllama"),
    [](const auto& info) {
      std::string name = info.param;
      for (char& c : name) {
        if (c == '-' || c == '.') c = '_';
      }
      return name;
    });

// What a GGUF file cannot say.
TEST(FamilyFilesTest, FoldersSayMore) {
  const ModelSpec mistral = OpenFolder("mistral").content.spec;
  EXPECT_EQ(mistral.layer_specs[0].window, 16);
  EXPECT_EQ(OpenGguf("mistral").content.spec.layer_specs[0].window, 0);
  const ModelSpec gemma = OpenFolder("gemma2").content.spec;
  EXPECT_FLOAT_EQ(gemma.score_scale, 1 / std::sqrt(20.0f));
  EXPECT_EQ(gemma.layer_specs[0].window, 16);
  EXPECT_EQ(gemma.layer_specs[1].window, 0);
  const ModelSpec deepseek = OpenFolder("deepseek-v2").content.spec;
  const double all = 0.075 * std::log(4.0) + 1, own = 0.15 * std::log(4.0) + 1;
  EXPECT_FLOAT_EQ(deepseek.ropes[0].magnitude, own / all);
  EXPECT_FLOAT_EQ(deepseek.score_scale, all * all / 8);
}

TEST(FamilyFilesTest, OlderConfigurationsMeanTheSame) {
  for (const char* family : {"llama3.1", "gemma3", "phi3-longrope"}) {
    SCOPED_TRACE(family);
    ExpectSameSpec(OpenFolder(family, "config_old.json").content.spec,
                   OpenFolder(family).content.spec);
  }
}

}  // namespace
}  // namespace penstock
