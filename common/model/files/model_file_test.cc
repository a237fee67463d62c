#include "common/model/files/model_file.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kModel[] = PENSTOCK_MODELS "/SmolLM2-135M-Instruct.Q4_1.gguf";

// Opened once: the tests only read it.
const ModelFile& Model() {
  static const auto& model = *[] {
    auto opened = OpenModelFile(kModel);
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status();
      std::abort();
    }
    return opened->release();
  }();
  return model;
}

std::map<std::string, TensorView> TensorsByName() {
  std::map<std::string, TensorView> tensors;
  auto add = [&](const TensorView& view) { tensors[view.name] = view; };
  const ModelWeights& weights = Model().weights();
  add(weights.token_embedding);
  add(weights.output_norm);
  for (const LayerWeights& layer : weights.layers) {
    for (const TensorView* view :
         {&layer.attention_norm, &layer.q, &layer.k, &layer.v, &layer.o,
          &layer.ffn_norm, &layer.gate, &layer.up, &layer.down}) {
      add(*view);
    }
  }
  return tensors;
}

// Values of tests/data/cases/README.md and of the model's published
// configuration.
TEST(ModelFileTest, RealModelSpec) {
  const ModelSpec& spec = Model().spec();
  EXPECT_EQ(spec.architecture, "llama");
  EXPECT_EQ(spec.name, "Smollm2 135M 8k Lc100K Mix1 Ep2");
  EXPECT_TRUE(spec.content);
  EXPECT_EQ(spec.vocab_size, 49152);
  EXPECT_EQ(spec.layers, 30);
  EXPECT_EQ(spec.hidden, 576);
  EXPECT_EQ(spec.heads, 9);
  EXPECT_EQ(spec.kv_heads, 3);
  EXPECT_EQ(spec.head_dim, 64);
  EXPECT_EQ(spec.ffn, 1536);
  EXPECT_EQ(spec.context_length, 8192);
  EXPECT_FLOAT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_EQ(spec.ropes[0].base, 100000.0f);
  EXPECT_EQ(spec.ropes[0].dimensions, 64);
  EXPECT_EQ(spec.ropes[0].pairing, RopePairing::kInterleaved);
  EXPECT_TRUE(spec.tied_head);
  EXPECT_EQ(Model().weights().output.data.data(),
            Model().weights().token_embedding.data.data());
}

TEST(ModelFileTest, RealModelVocabulary) {
  const Vocabulary& vocabulary = Model().vocabulary();
  EXPECT_EQ(vocabulary.model, "gpt2");
  EXPECT_EQ(vocabulary.pre_tokenizer, "smollm");
  ASSERT_EQ(vocabulary.tokens.size(), 49152u);
  ASSERT_EQ(vocabulary.kinds.size(), 49152u);
  EXPECT_EQ(vocabulary.merges.size(), 48900u);
  EXPECT_EQ(vocabulary.tokens[2], "<|im_end|>");
  EXPECT_EQ(vocabulary.kinds[16], TokenKind::kControl);
  EXPECT_EQ(vocabulary.kinds[17], TokenKind::kNormal);
  EXPECT_EQ(vocabulary.tokens[vocabulary.merges[0].left], "\xC4\xA0");
  EXPECT_EQ(vocabulary.tokens[vocabulary.merges[0].right], "t");
  EXPECT_EQ(vocabulary.bos, 1);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_EQ(vocabulary.unknown, 0);
  EXPECT_FALSE(vocabulary.add_bos);
  EXPECT_THAT(vocabulary.stop_tokens, ElementsAre(2, 0));
}

TEST(ModelFileTest, RealModelChatTemplate) {
  EXPECT_THAT(Model().chat_template(), HasSubstr("{% for message in messages"));
  EXPECT_THAT(Model().chat_template(), HasSubstr("<|im_start|>assistant\n"));
}

// Every tensor against an independent reader: place, shape, and the values
// after dequantisation.
TEST(ModelFileTest, RealModelTensors) {
  std::map<std::string, TensorView> tensors = TensorsByName();
  const uint8_t* base = nullptr;
  std::ifstream cases(PENSTOCK_TEST_DATA "/cases/tensors.jsonl");
  ASSERT_TRUE(cases.is_open());
  size_t count = 0;
  for (std::string line; std::getline(cases, line); ++count) {
    auto expected = nlohmann::json::parse(line);
    std::string name = expected["name"];
    SCOPED_TRACE(name);
    ASSERT_TRUE(tensors.contains(name));
    const TensorView& tensor = tensors[name];
    EXPECT_EQ(Traits(tensor.type).name, expected["type"].get<std::string>());
    std::vector<int64_t> shape = expected["ne"];
    std::reverse(shape.begin(), shape.end());
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(tensor.data.size(), expected["n_bytes"].get<uint64_t>());
    uint64_t offset = expected["file_offset"];
    if (base == nullptr) base = tensor.data.data() - offset;
    EXPECT_EQ(tensor.data.data() - base, static_cast<ptrdiff_t>(offset));

    std::vector<float> values(tensor.rows() * tensor.cols());
    double sum = 0, abs_sum = 0;
    for (int64_t row = 0; row < tensor.rows(); ++row) {
      absl::Span<float> out(&values[row * tensor.cols()], tensor.cols());
      DequantizeRow(tensor, row, out);
      for (float value : out) {
        sum += value;
        abs_sum += std::abs(double{value});
      }
    }
    // The reference summed in F64; each of our values rounds once to F32.
    double tolerance = expected["abs_sum"].get<double>() * 0x1p-24;
    EXPECT_NEAR(sum, expected["sum"].get<double>(), tolerance);
    EXPECT_NEAR(abs_sum, expected["abs_sum"].get<double>(), tolerance);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(values[i], expected["first8"][i].get<float>()) << i;
      EXPECT_EQ(values[values.size() - 8 + i],
                expected["last8"][i].get<float>())
          << i;
    }
  }
  EXPECT_EQ(count, 136u);
  EXPECT_EQ(tensors.size(), 272u);
}

TEST(ModelFileTest, MissingFileNamesPath) {
  auto opened = OpenModelFile("/nonexistent/model.gguf");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("/nonexistent/model.gguf"));
}

}  // namespace
}  // namespace penstock
