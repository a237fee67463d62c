#include "common/model/files/hf_model.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/files/model_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using E = ModelError;

// A tiny model of tests/data/families whose texts may be changed.
class Folder {
 public:
  explicit Folder(const std::string& family)
      : folder_(*OpenModelFolder(
            absl::StrCat(PENSTOCK_TEST_DATA, "/families/", family))) {
    config = Json::parse(folder_.model.config.text());
    index_text = std::string(folder_.model.index.text());
    generation = Json::parse(folder_.model.generation_config.text());
  }

  HuggingFaceFiles Files() {
    config_text_ = config.dump();
    generation_text_ = generation.dump();
    HuggingFaceFiles files = folder_.model;
    files.config.bytes = Bytes(config_text_);
    files.generation_config.bytes = Bytes(generation_text_);
    files.index.bytes = Bytes(index_text);
    return files;
  }

  Json config, generation;
  std::string index_text;

 private:
  static absl::Span<const uint8_t> Bytes(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }

  ModelFolder folder_;
  std::string config_text_, generation_text_;
};

struct Case {
  const char* family;
  ModelError error;
  const char* message;
  std::function<void(Folder&)> edit;
};

std::vector<Case> SpecCases() {
  auto set = [](const char* key, Json value) {
    return [key, value](Folder& f) { f.config[key] = value; };
  };
  auto rope = [](const char* key, Json value) {
    return
        [key, value](Folder& f) { f.config["rope_parameters"][key] = value; };
  };
  return {
      {"llama2", E::kArchitecture, "\"mamba\"", set("model_type", "mamba")},
      {"llama2", E::kMissingKey, "hidden_size", set("hidden_size", nullptr)},
      {"llama2", E::kKeyType, "hidden_size: found JSON type string",
       set("hidden_size", "64")},
      {"llama2", E::kValueRange, "num_hidden_layers",
       set("num_hidden_layers", 0)},
      {"llama2", E::kValueRange, "vocab_size",
       set("vocab_size", 18446744073709551615u)},
      {"llama2", E::kHeadCount, "num_key_value_heads",
       set("num_key_value_heads", 3)},
      {"llama2", E::kArchitecture, "hidden_act", set("hidden_act", "relu")},
      {"llama2", E::kArchitecture, "quantization_config",
       set("quantization_config", {{"quant_method", "fp8"}})},
      {"llama2", E::kTensorShape, "embed_tokens", set("vocab_size", 300)},
      {"llama2", E::kMissingTensor, "layers.2.", set("num_hidden_layers", 3)},
      {"llama2", E::kUnexpectedTensor, "layers.1.",
       set("num_hidden_layers", 1)},
      {"gemma3", E::kArchitecture, "use_bidirectional_attention",
       set("use_bidirectional_attention", true)},
      {"olmoe", E::kArchitecture, "clip_qkv", set("clip_qkv", 8.0)},
      {"gemma3", E::kArchitecture, "\"chunked_attention\"",
       set("layer_types",
           Json::array({"chunked_attention", "", "", "", "", ""}))},
      {"gemma3", E::kValueRange, "layer_types: found 1 elements",
       set("layer_types", Json::array({"full_attention"}))},
      {"deepseek-v3", E::kArchitecture, "scoring_func",
       set("scoring_func", "tanh")},
      {"deepseek-v3", E::kExpertCount, "n_group", set("n_group", 3)},
      {"llama3.1", E::kRopeScaling, "\"mystery\"",
       rope("rope_type", "mystery")},
      {"llama3.1", E::kMissingKey, "rope_parameters.factor",
       rope("factor", nullptr)},
      {"llama3.1", E::kValueRange, "rope_parameters.factor",
       rope("factor", 0.5)},
      {"llama3.1", E::kValueRange, "high_freq_factor",
       rope("high_freq_factor", 1.0)},
      {"llama-yarn", E::kRopeScaling, "truncate", rope("truncate", false)},
      {"phi3-longrope", E::kRopeDimensions, "long_factor: found 1",
       rope("long_factor", Json::array({1.0}))},
      {"phi3-longrope", E::kRopeDimensions, "partial_rotary_factor",
       rope("partial_rotary_factor", 0.1)},
  };
}

TEST(HuggingFaceModelTest, NamesWhatIsWrong) {
  for (const Case& c : SpecCases()) {
    SCOPED_TRACE(absl::StrCat(c.family, ": ", c.message));
    Folder folder(c.family);
    ASSERT_TRUE(ReadHuggingFaceModel(folder.Files()).ok());
    c.edit(folder);
    const absl::Status status = ReadHuggingFaceModel(folder.Files()).status();
    EXPECT_EQ(ModelErrorOf(status), c.error) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
  }
}

TEST(HuggingFaceModelTest, JsonIsBounded) {
  Folder folder("llama2");
  HuggingFaceFiles files = folder.Files();
  for (const std::string& text :
       {std::string("[]"), std::string("{"), std::string(100000, '['),
        R"({"a":)" + std::string(30, '[') + std::string(30, ']') + "}",
        std::string(5 << 20, ' ')}) {
    files.config.bytes = {reinterpret_cast<const uint8_t*>(text.data()),
                          text.size()};
    const absl::Status status = ReadHuggingFaceModel(files).status();
    EXPECT_EQ(ModelErrorOf(status), E::kJson) << status;
  }
  const std::string twice = R"({"model_type":"llama","model_type":"llama"})";
  files.config.bytes = {reinterpret_cast<const uint8_t*>(twice.data()),
                        twice.size()};
  EXPECT_EQ(ModelErrorOf(ReadHuggingFaceModel(files).status()),
            E::kDuplicateKey);
}

TEST(HuggingFaceModelTest, ShardNamesStayInTheFolder) {
  Folder folder("llama3.1");
  auto names = ShardNames(folder.Files().index);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, ElementsAre("model-00001-of-00002.safetensors",
                                  "model-00002-of-00002.safetensors"));
  for (const char* name :
       {"../a.safetensors", "/a.safetensors", "a/b.safetensors", ".safetensors",
        "a.bin", "", "a\n.safetensors"}) {
    Json index = Json::parse(folder.index_text);
    index["weight_map"]["lm_head.weight"] = name;
    Folder bad("llama3.1");
    bad.index_text = index.dump();
    EXPECT_EQ(ModelErrorOf(ShardNames(bad.Files().index).status()),
              E::kShardName)
        << name;
  }
}

TEST(HuggingFaceModelTest, IndexAndShardsAgree) {
  const Folder honest("llama3.1");
  for (const char* change : {"moved", "missing", "extra"}) {
    SCOPED_TRACE(change);
    Json index = Json::parse(honest.index_text);
    Json& map = index["weight_map"];
    if (change[1] == 'o') {
      map["lm_head.weight"] = map["model.norm.weight"];
    } else if (change[0] == 'm') {
      map.erase("lm_head.weight");
    } else {
      map["other.weight"] = map["model.norm.weight"];
    }
    Folder folder("llama3.1");
    folder.index_text = index.dump();
    const absl::Status status = ReadHuggingFaceModel(folder.Files()).status();
    EXPECT_EQ(ModelErrorOf(status), E::kShardMap) << status;
  }
}

TEST(HuggingFaceModelTest, EndTokens) {
  Folder folder("llama2");
  folder.generation["eos_token_id"] = Json::array({2, 0, 5});
  EXPECT_THAT(*ReadEndTokens(folder.Files(), 288), ElementsAre(2, 0, 5));
  folder.generation["eos_token_id"] = nullptr;
  EXPECT_THAT(*ReadEndTokens(folder.Files(), 288), ElementsAre(2));
  folder.generation["eos_token_id"] = 288;
  EXPECT_EQ(ModelErrorOf(ReadEndTokens(folder.Files(), 288).status()),
            E::kTokenId);
}

// Layers that predict several tokens at once are not part of the model.
TEST(HuggingFaceModelTest, ExtraPredictionLayersAreLeft) {
  Folder folder("llama2");
  folder.config["num_hidden_layers"] = 1;
  folder.config["num_nextn_predict_layers"] = 1;
  auto content = ReadHuggingFaceModel(folder.Files());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->weights.layers.size(), 1u);
}

}  // namespace
}  // namespace penstock
