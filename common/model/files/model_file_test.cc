#include "common/model/files/model_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
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

// Both formats of a tiny model: the same tokens, ends and template.
TEST(ModelFileTest, FolderHasTheVocabularyOfItsGguf) {
  const std::string folder = PENSTOCK_TEST_DATA "/families/llama3.1";
  auto opened = OpenModelFile(folder);
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto gguf = OpenModelFile(folder + "/model.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  const Vocabulary& vocabulary = (*opened)->vocabulary();
  EXPECT_EQ((*opened)->spec().name, "llama3.1");
  EXPECT_EQ(vocabulary.tokens, (*gguf)->vocabulary().tokens);
  EXPECT_EQ(vocabulary.kinds, (*gguf)->vocabulary().kinds);
  EXPECT_EQ(vocabulary.eos, 2);
  EXPECT_THAT(vocabulary.stop_tokens, testing::Contains(2));
  EXPECT_EQ((*opened)->chat_template(), (*gguf)->chat_template());
  EXPECT_NE((*opened)->spec().content, (*gguf)->spec().content);
}

TEST(ModelFileTest, QuantisesMatricesOnLoad) {
  const std::string path = PENSTOCK_TEST_DATA "/families/qwen2";
  auto plain = OpenModelFile(path);
  ASSERT_TRUE(plain.ok()) << plain.status();
  uint64_t done = 0, total = 0;
  int calls = 0;
  auto opened = OpenModelFile(
      path, {.weights = TensorType::kQ8_0,
             .parallel_for =
                 [](int64_t count, const std::function<void(int64_t)>& body) {
                   while (count-- > 0) body(count);
                 },
             .progress =
                 [&](absl::string_view stage, uint64_t more, uint64_t all) {
                   if (stage != "quantising") return;
                   ++calls;
                   done += more;
                   total = all;
                 }});
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_GT(calls, 0);
  EXPECT_EQ(done, total);
  EXPECT_NE((*opened)->spec().content, (*plain)->spec().content);
  const LayerWeights& layer = (*opened)->weights().layers[1];
  const LayerWeights& from = (*plain)->weights().layers[1];
  EXPECT_EQ(layer.attention_norm.type, from.attention_norm.type);
  EXPECT_EQ(layer.q_bias.type, from.q_bias.type);
  ASSERT_EQ(layer.down.type, TensorType::kQ8_0);
  EXPECT_EQ(layer.down.shape, from.down.shape);
  EXPECT_EQ((*opened)->weights().output.data.data(),
            (*opened)->weights().token_embedding.data.data());
  std::vector<float> row(from.down.cols()), other(from.down.cols());
  for (int64_t r = 0; r < from.down.rows(); ++r) {
    DequantizeRow(from.down, r, absl::MakeSpan(row));
    DequantizeRow(layer.down, r, absl::MakeSpan(other));
    float most = 0;
    for (float value : row) most = std::max(most, std::abs(value));
    for (size_t i = 0; i < row.size(); ++i) {
      ASSERT_NEAR(row[i], other[i], most / 127 * 0.57f) << r;
    }
  }
}

TEST(ModelFileTest, CannotQuantiseToBlocksOf256) {
  auto opened = OpenModelFile(kModel, {.weights = TensorType::kQ4_K});
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("Q4_K"));
}

TEST(ModelFileTest, FolderWithoutWeightsSaysWhatToGive) {
  const std::string path = testing::TempDir() + "/empty_model";
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  EXPECT_THAT(std::string(OpenModelFile(path).status().message()),
              HasSubstr("config.json"));
  std::ofstream(path + "/config.json") << "{}";
  const absl::Status status = OpenModelFile(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.safetensors"));
}

TEST(ModelFileTest, MissingFileNamesPath) {
  auto opened = OpenModelFile("/nonexistent/model.gguf");
  EXPECT_EQ(opened.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("/nonexistent/model.gguf"));
}

}  // namespace
}  // namespace penstock
