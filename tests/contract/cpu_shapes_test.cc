#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/full_transcript.h"
#include "tests/contract/random_model.h"

namespace penstock {
namespace {

// Shapes and combinations that no tiny family has.
struct Shape {
  std::string name;
  ModelSpec spec;
  RandomModel::Extras extras;

  friend void PrintTo(const Shape& shape, std::ostream* out) {
    *out << shape.name;
  }
};

ModelSpec Base() {
  ModelSpec spec;
  spec.vocab_size = 40;
  spec.layers = 2;
  spec.hidden = 64;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = spec.value_dim = 32;
  spec.ffn = 96;
  spec.context_length = 1024;
  spec.ropes = {{.dimensions = 32}};
  spec.layer_specs.resize(2);
  spec.score_scale = 0.2f;
  return spec;
}

// More query heads of a KV head than a tile takes, heads that are half a block
// of the output's input, windows over split borders, half of a head rotated.
Shape WideGroup() {
  Shape shape = {"wide_group", Base(), {.biases = true}};
  ModelSpec& spec = shape.spec;
  spec.heads = 34;
  spec.kv_heads = 1;
  spec.head_dim = spec.value_dim = 16;
  spec.ropes[0].dimensions = 8;
  spec.layer_specs[0].window = 270;
  spec.layer_specs[1].window = 20;
  spec.score_cap = 3;
  return shape;
}

// Values narrower than keys, two ropes of different widths and pairings, norms
// over all heads, norms after blocks, a gain with an offset.
Shape NarrowValues() {
  Shape shape = {
      "narrow_values", Base(), {.pre_norms = false, .post_norms = true}};
  ModelSpec& spec = shape.spec;
  spec.head_dim = 80;
  spec.ropes = {{.dimensions = 80, .pairing = RopePairing::kHalves},
                {.base = 100, .dimensions = 20, .magnitude = 1.2f}};
  spec.layer_specs[1].rope = 1;
  spec.qk_norm = QkNorm::kWhole;
  spec.norm_offset = 1;
  spec.score_scale = 0.1f;
  spec.activation = Activation::kGeluTanh;
  spec.logit_cap = 4;
  spec.residual_scale = 0.7f;
  return shape;
}

// More heads than a tile takes.
Shape WideLatent() {
  Shape shape = {"wide_latent", Base(), {}};
  ModelSpec& spec = shape.spec;
  spec.latent = {.query_rank = 32,
                 .latent = 64,
                 .plain_dim = 32,
                 .rotated_dim = 16,
                 .value_dim = 16};
  spec.heads = 26;
  spec.kv_heads = 1;
  spec.head_dim = 80;
  spec.value_dim = 64;
  spec.ropes[0].dimensions = 16;
  return shape;
}

// As many experts as fit no whole panel, all kinds of choice, a shared expert,
// a norm after the block.
Shape ManyExperts() {
  Shape shape = {"many_experts", Base(), {.post_norms = true}};
  ModelSpec& spec = shape.spec;
  spec.experts = {.count = 21,
                  .used = 4,
                  .ffn = 32,
                  .shared_ffn = 64,
                  .gating = ExpertGating::kSigmoid,
                  .normalize = true,
                  .scale = 1.5f,
                  .groups = 3,
                  .groups_used = 2,
                  .group_score = ExpertGroupScore::kSumOfBestTwo};
  spec.layer_specs[1].experts = true;
  spec.layer_specs[1].rope = -1;
  return shape;
}

std::vector<TokenId> Tokens(int count) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back(i * i % 37 + i % 3);
  return tokens;
}

class CpuShapesTest : public testing::TestWithParam<Shape> {
 protected:
  const RandomModel model_{GetParam().spec, 7, GetParam().extras};
};

// Longer than two attention splits.
TEST_P(CpuShapesTest, LogProbabilitiesAreThoseOfTheOracle) {
  const std::vector<TokenId> tokens = Tokens(540);
  const Transcript expected = FullTranscript(MakeOracle(), model_, tokens, 512);
  const Transcript ours =
      FullTranscript(MakeExactCpu(CpuPath::kAuto, 2), model_, tokens, 512);
  const std::vector<double> errors = LogprobErrors(ours, expected);
  EXPECT_LE(errors[errors.size() * 97 / 100], 1e-2);
  // A near tie between experts may fall the other way.
  if (!GetParam().spec.experts.has_value()) {
    EXPECT_LE(errors.back(), 1e-2);
  }
  ExpectSame(
      FullTranscript(MakeExactCpu(CpuPath::kAuto, 3), model_, tokens, 37),
      ours);
}

TEST_P(CpuShapesTest, PathsAndNeighboursChangeNoBit) {
  const std::vector<TokenId> tokens = Tokens(60);
  const Transcript expected =
      FullTranscript(MakeExactCpu(CpuPath::kAuto, 2), model_, tokens, 512);
  for (CpuPath path : CpuPaths()) {
    SCOPED_TRACE(CpuPathName(path));
    ExpectSame(FullTranscript(MakeExactCpu(path, 1), model_, tokens, 512),
               expected);
  }
  ExpectSame(CrowdedTranscript(MakeExactCpu(CpuPath::kAuto, 2), model_, tokens),
             expected);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CpuShapesTest,
                         testing::Values(WideGroup(), NarrowValues(),
                                         WideLatent(), ManyExperts()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock
