#include "common/model/files/testing/tiny_llama.h"

#include <cmath>

#include "common/model/files/testing/tensor_encoding.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

TEST(TinyLlamaTest, OpensWithWhatWasAsked) {
  auto model = OpenTinyLlama();
  EXPECT_EQ(model->spec().name, "tiny");
  EXPECT_EQ(model->spec().layers, 2);
  EXPECT_EQ(model->spec().head_dim, 16);
  EXPECT_EQ(model->spec().kv_width(), 32);
  EXPECT_EQ(model->spec().vocab_size, 3 + 256 + 26);
  EXPECT_TRUE(model->spec().tied_head);
  EXPECT_EQ(model->weights().layers.size(), 2u);
  EXPECT_THAT(model->weights().layers[1].down.shape, ElementsAre(64, 128));
  EXPECT_THAT(model->vocabulary().stop_tokens, ElementsAre(2, 0));
}

TEST(TinyLlamaTest, EqualOptionsGiveEqualBytes) {
  EXPECT_EQ(MakeTinyLlama().Encode(), MakeTinyLlama().Encode());
  EXPECT_NE(MakeTinyLlama({.seed = 2}).Encode(), MakeTinyLlama().Encode());
}

TEST(TinyLlamaTest, EveryTypeAndAnOwnHead) {
  auto model = OpenTinyLlama(
      {.embedding_type = TensorType::kF16,
       .matrix_types = {TensorType::kF32, TensorType::kBF16, TensorType::kQ4_0,
                        TensorType::kQ4_1, TensorType::kQ8_0},
       .tied_head = false,
       .all_bytes = false});
  EXPECT_FALSE(model->spec().tied_head);
  EXPECT_EQ(model->weights().output.name, "output.weight");
  EXPECT_EQ(model->weights().layers[0].o.type, TensorType::kQ4_1);
}

// What is encoded comes back within half a quantisation step; Q4_0 has no step
// for the largest value of the other sign.
TEST(TensorEncodingTest, RoundTripStaysWithinAStep) {
  std::vector<float> values(64);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i)) * 3.0f;
  }
  struct Case {
    TensorType type;
    float tolerance;
  };
  for (Case c : {Case{TensorType::kF32, 0.0f}, Case{TensorType::kF16, 1e-3f},
                 Case{TensorType::kBF16, 8e-3f},
                 Case{TensorType::kQ4_0, 3.0f / 8 * 1.01f},
                 Case{TensorType::kQ4_1, 6.0f / 15 * 0.51f},
                 Case{TensorType::kQ8_0, 3.0f / 127 * 0.51f}}) {
    SCOPED_TRACE(std::string(Traits(c.type).name));
    std::string bytes = EncodeTensor(c.type, values);
    TensorView view{
        .name = "t",
        .type = c.type,
        .shape = {2, 32},
        .data = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}};
    for (int64_t row = 0; row < 2; ++row) {
      float out[32];
      DequantizeRow(view, row, out);
      for (int i = 0; i < 32; ++i) {
        EXPECT_NEAR(out[i], values[row * 32 + i], c.tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace penstock
