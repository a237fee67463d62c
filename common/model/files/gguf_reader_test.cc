#include "common/model/files/gguf_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/model/files/gguf_model.h"
#include "common/model/files/testing/tiny_llama.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;

absl::string_view Text(absl::Span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The format written out by hand after its specification, so that reader and
// builder cannot agree on a mistake.
TEST(GgufReaderTest, ReadsAHandWrittenFile) {
  const std::vector<uint8_t> file = {
      'G', 'G', 'U', 'F', 2, 0, 0, 0,                // magic, version
      1, 0, 0, 0, 0, 0, 0, 0,                        // tensors
      2, 0, 0, 0, 0, 0, 0, 0,                        // metadata
      1, 0, 0, 0, 0, 0, 0, 0, 'a', 4, 0, 0, 0,       // "a": u32
      42, 0, 0, 0,                                   //
      2, 0, 0, 0, 0, 0, 0, 0, 'b', 'c', 9, 0, 0, 0,  // "bc": array
      3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,            // of i16, 2 elements
      0xFF, 0xFF, 7, 0,                              //
      1, 0, 0, 0, 0, 0, 0, 0, 't', 2, 0, 0, 0,       // "t", 2
                                                     // dimensions
      2, 0, 0, 0, 0, 0, 0, 0,                        // inner
      3, 0, 0, 0, 0, 0, 0, 0,                        // outer
      1, 0, 0, 0,                                    // F16
      0, 0, 0, 0, 0, 0, 0, 0,                        // offset
      0, 0, 0, 0, 0, 0, 0, 0,                        // padding to 128
      0, 0, 0, 0, 0, 0, 0, 0,                        //
      0x00, 0x3C, 0x00, 0xC0,                        // row 0: 1, -2
      0xFF, 0x7B, 0x01, 0x00,                        // row 1
      0x00, 0x00, 0x00, 0x80};
  ASSERT_EQ(file.size(), 128u + 12u);
  auto reader = GgufReader::Parse(file, "hand.gguf");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->version(), 2u);
  EXPECT_EQ(*reader->metadata().Integer("a", {}), 42);
  EXPECT_THAT(*reader->metadata().Integers("bc"), ElementsAre(-1, 7));
  const TensorView* tensor = reader->FindTensor("t");
  ASSERT_NE(tensor, nullptr);
  EXPECT_THAT(tensor->shape, ElementsAre(3, 2));
  EXPECT_EQ(tensor->data.data(), file.data() + 128);
  float row[2];
  DequantizeRow(*tensor, 0, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(1.0f, -2.0f));
  DequantizeRow(*tensor, 1, absl::MakeSpan(row));
  EXPECT_THAT(row, ElementsAre(65504.0f, 0x1p-24f));
  EXPECT_EQ(reader->FindTensor("u"), nullptr);
}

TEST(GgufReaderTest, BothVersions) {
  for (uint32_t version : {2u, 3u}) {
    GgufDocument document = MakeTinyLlama();
    document.version = version;
    EXPECT_TRUE(ReadGgufModel(document.Encode(), "v").ok()) << version;
  }
}

TEST(GgufReaderTest, OtherAlignment) {
  for (uint32_t alignment : {8u, 4096u}) {
    GgufDocument document = MakeTinyLlama();
    document.alignment = alignment;
    document.Set(Uint32Entry("general.alignment", alignment));
    auto bytes = document.Encode();
    auto reader = GgufReader::Parse(bytes, "aligned");
    ASSERT_TRUE(reader.ok()) << reader.status();
    const TensorView* tensor = reader->FindTensor("blk.1.ffn_down.weight");
    EXPECT_EQ((tensor->data.data() - bytes.data()) % alignment, 0);
    EXPECT_EQ(Text(tensor->data), document.tensors.back().data);
  }
}

TEST(GgufReaderTest, TensorsInAnyOrderAndBytesBehindThem) {
  GgufDocument document = MakeTinyLlama();
  std::reverse(document.tensors.begin(), document.tensors.end());
  std::vector<uint8_t> bytes = document.Encode();
  bytes.resize(bytes.size() + 1000);
  auto reader = GgufReader::Parse(bytes, "reversed");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(Text(reader->FindTensor("token_embd.weight")->data),
            document.tensors.back().data);
}

TEST(GgufReaderTest, UnknownKeysOfAnyTypeAreSkipped) {
  GgufDocument document = MakeTinyLlama();
  document.Set({"x.i64", 11, GgufNumber<int64_t>(-5)});
  document.Set({"x.f64", 12, GgufNumber<double>(0.5)});
  document.Set({"x.nested", 9,
                GgufArray(GgufType::kArray, 2,
                          GgufArray(GgufType::kString, 1, GgufString("s")) +
                              GgufArray(GgufType::kBool, 2, {"\1\0", 2}))});
  std::vector<uint8_t> bytes = document.Encode();
  auto reader = GgufReader::Parse(bytes, "keys");
  ASSERT_TRUE(reader.ok()) << reader.status();
  const GgufMetadata& metadata = reader->metadata();
  EXPECT_EQ(*metadata.Integer("x.i64", {-10, 0}), -5);
  EXPECT_EQ(*metadata.Float("x.f64", {0, 1}), 0.5);
  EXPECT_EQ(*metadata.ArrayLength("x.nested"), 2u);
  EXPECT_TRUE(ReadGgufModel(bytes, "keys").ok());
}

TEST(GgufModelTest, OptionalKeysHaveTheFormatsDefaults) {
  GgufDocument document = MakeTinyLlama({.kv_heads = 4});
  document.Remove("llama.attention.head_count_kv");
  document.Remove("llama.rope.freq_base");
  document.Remove("tokenizer.ggml.add_bos_token");
  document.Remove("tokenizer.chat_template");
  document.Remove("tokenizer.ggml.bos_token_id");
  document.Remove("general.name");
  auto content = ReadGgufModel(document.Encode(), "some/dir/my.model.gguf");
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->spec.kv_heads, 4);
  EXPECT_EQ(content->spec.ropes[0].base, 10000.0f);
  EXPECT_EQ(content->spec.ropes[0].dimensions, 16);
  EXPECT_EQ(content->spec.name, "my.model");
  EXPECT_EQ(content->vocabulary.bos, -1);
  EXPECT_FALSE(content->vocabulary.add_bos);
  EXPECT_EQ(content->chat_template, "");
}

TEST(GgufModelTest, HeadWidthApartFromTheModelsWidth) {
  GgufDocument document = MakeTinyLlama({.layers = 1});
  // Two heads of 32 fill the same 64 rows as four of 16.
  document.Set(Uint32Entry("llama.attention.head_count", 2));
  document.Set(Uint32Entry("llama.attention.head_count_kv", 1));
  document.Set(Uint32Entry("llama.attention.key_length", 32));
  document.Set(Uint32Entry("llama.rope.dimension_count", 16));
  auto content = ReadGgufModel(document.Encode(), "wide");
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->spec.head_dim, 32);
  EXPECT_EQ(content->spec.q_width(), 64);
  EXPECT_EQ(content->spec.ropes[0].dimensions, 16);
}

TEST(GgufModelTest, StopTokensByRule) {
  GgufDocument document = MakeTinyLlama();
  std::vector<std::string> tokens =
      StringsOf(*document.FindEntry("tokenizer.ggml.tokens"));
  std::vector<int32_t> kinds =
      Int32sOf(*document.FindEntry("tokenizer.ggml.token_type"));
  size_t n = tokens.size();
  tokens[n - 1] = "<|eot_id|>";
  kinds[n - 1] = 3;
  tokens[n - 2] = "<|end|>";  // spelled so, but an ordinary token
  document.Set(StringsEntry("tokenizer.ggml.tokens", tokens));
  document.Set(Int32sEntry("tokenizer.ggml.token_type", kinds));
  document.Set(StringsEntry("tokenizer.ggml.merges", {}));
  document.Set(Uint32Entry("tokenizer.ggml.eot_token_id", 5));
  auto content = ReadGgufModel(document.Encode(), "stops");
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(content->vocabulary.stop_tokens,
              ElementsAre(2, 5, 0, static_cast<TokenId>(n - 1)));
}

TEST(GgufModelTest, ContentIdDependsOnEveryByte) {
  std::vector<uint8_t> bytes = MakeTinyLlama().Encode();
  ContentId first = (*OpenModelBytes(bytes))->spec().content;
  EXPECT_EQ((*OpenModelBytes(bytes))->spec().content, first);
  bytes.back() ^= 1;
  EXPECT_NE((*OpenModelBytes(bytes))->spec().content, first);
}

}  // namespace
}  // namespace penstock
