#include "common/model/files/testing/hf_mutator.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/model/files/testing/byte_edits.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::json;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good()) << path << " is missing";
  return {std::istreambuf_iterator<char>(file), {}};
}

Json RandomValue(Random& random) {
  const Json values[] = {
      nullptr,
      true,
      0,
      1,
      -1,
      2,
      3,
      5,
      1e30,
      -0.5,
      0.25,
      1e-30,
      "",
      "yarn",
      "llama3",
      "dynamic",
      "longrope",
      "linear",
      "default",
      "sliding_attention",
      "mixtral",
      "qwen3_moe",
      "gemma3_text",
      "deepseek_v3",
      "F16",
      "I64",
      "../x.safetensors",
      "model-00001-of-00002.safetensors",
      Json::array(),
      Json::array({1, 2}),
      Json::array({"a"}),
      Json::object(),
      Json::object({{"rope_type", "linear"}, {"factor", 0}}),
  };
  if (OneIn(random, 3)) return EdgeNumber(random);
  if (OneIn(random, 3)) return random.Below(130);
  return Pick(random, values);
}

// Of an object or array at random, at any depth.
Json& PickContainer(Random& random, Json& root) {
  Json* at = &root;
  while (!at->empty() && OneIn(random, 2)) {
    auto it = at->begin();
    std::advance(it, random.Below(at->size()));
    if (!it->is_structured()) break;
    at = &*it;
  }
  return *at;
}

void EditMember(Random& random, Json& container) {
  if (container.empty() || OneIn(random, 12)) {
    if (container.is_object()) {
      container[OneIn(random, 2) ? "" : "x"] = RandomValue(random);
    } else {
      container.push_back(RandomValue(random));
    }
    return;
  }
  auto it = container.begin();
  std::advance(it, random.Below(container.size()));
  switch (random.Below(4)) {
    case 0:
      container.erase(it);
      break;
    case 1: {
      auto other = container.begin();
      std::advance(other, random.Below(container.size()));
      std::swap(*it, *other);
      break;
    }
    default:
      *it = RandomValue(random);
  }
}

// A member of the object again, under the same key.
std::string WithDuplicate(Random& random, const Json& object) {
  std::string text = object.dump();
  if (object.empty()) return text;
  auto it = object.begin();
  std::advance(it, random.Below(object.size()));
  text.pop_back();
  return text + "," + Json(it.key()).dump() + ":" + it->dump() + "}";
}

std::string EditBytesOf(Random& random, const std::string& text) {
  std::vector<uint8_t> bytes(text.begin(), text.end());
  EditBytes(random, bytes);
  return {bytes.begin(), bytes.end()};
}

void EditJson(Random& random, std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || OneIn(random, 20)) {
    text = EditBytesOf(random, text);
    return;
  }
  if (OneIn(random, 30)) {
    text = WithDuplicate(random, json);
    return;
  }
  if (OneIn(random, 60)) {
    for (int i = 0; i < 40; ++i) json = Json::object({{"x", json}});
  } else {
    EditMember(random, PickContainer(random, json));
  }
  text = json.dump();
}

// A key that readers know, set to what comes close to being right.
void EditKnownKey(Random& random, FolderImage& folder) {
  constexpr const char* kKeys[] = {
      "model_type",
      "num_attention_heads",
      "num_key_value_heads",
      "head_dim",
      "hidden_act",
      "layer_types",
      "n_group",
      "topk_group",
      "num_experts_per_tok",
      "num_local_experts",
      "n_routed_experts",
      "rope_scaling",
      "tie_word_embeddings",
      "num_hidden_layers",
      "sliding_window",
      "no_rope_layers",
      "partial_rotary_factor",
      "mlp_only_layers",
      "vocab_size",
      "kv_lora_rank",
      "qk_rope_head_dim",
  };
  constexpr const char* kTypes[] = {"linear", "dynamic", "yarn", "longrope",
                                    "llama3", "su",      "ntk",  "default"};
  Json config = Json::parse(folder.config, nullptr, false);
  if (!config.is_object()) return;
  if (OneIn(random, 3)) {
    Json& rope = config["rope_parameters"];
    if (rope.is_object()) rope["rope_type"] = Pick(random, kTypes);
  } else if (OneIn(random, 3)) {
    config["n_group"] = random.Below(9);
    config["topk_group"] = random.Below(5);
    config["num_experts_per_tok"] = random.Below(6);
  } else {
    config[Pick(random, kKeys)] =
        OneIn(random, 2) ? Json(random.Below(9)) : RandomValue(random);
  }
  folder.config = config.dump();
}

// A tensor's place, or what the index says of it.
void EditIndex(Random& random, std::string& text) {
  Json index = Json::parse(text, nullptr, false);
  if (!index.is_object() || !index.contains("weight_map")) return;
  Json& map = index["weight_map"];
  if (!map.is_object() || map.empty()) return;
  const char* names[] = {"../a.safetensors",
                         "a/b.safetensors",
                         "a.bin",
                         "",
                         "model-00001-of-00002.safetensors",
                         "model-00002-of-00002.safetensors",
                         "model-00001-of-00003.safetensors"};
  auto it = map.begin();
  std::advance(it, random.Below(map.size()));
  if (OneIn(random, 3)) {
    map.erase(it);
  } else if (OneIn(random, 3)) {
    map["no.such.tensor"] = *it;
  } else {
    *it = Pick(random, names);
  }
  text = index.dump();
}

std::string Length(uint64_t length) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes;
}

// A field of a tensor, to what comes close to being right.
void EditTensor(Random& random, Json& tensor) {
  if (!tensor.is_object()) return;
  const char* types[] = {"F32", "F16", "BF16", "I64", "F8_E4M3"};
  switch (random.Below(4)) {
    case 0:
      tensor["dtype"] = Pick(random, types);
      return;
    case 1:
      tensor["shape"] = Json::array();
      for (uint64_t i = random.Below(7); i > 0; --i) {
        tensor["shape"].push_back(OneIn(random, 3) ? EdgeNumber(random)
                                                   : random.Below(40));
      }
      return;
    default:
      Json& offsets = tensor["data_offsets"];
      if (!offsets.is_array() || offsets.size() != 2) return;
      const int64_t by = 2 * static_cast<int64_t>(random.Below(9)) - 8;
      for (Json& offset : offsets) {
        if (!offset.is_number_unsigned() || OneIn(random, 3)) continue;
        offset = static_cast<uint64_t>(offset.get<uint64_t>() + by);
      }
  }
}

void EditHeader(Random& random, std::string& file) {
  uint64_t length = 0;
  if (file.size() < sizeof(length)) return;
  std::memcpy(&length, file.data(), sizeof(length));
  if (length > file.size() - sizeof(length)) return;
  std::string header = file.substr(sizeof(length), length);
  const std::string data = file.substr(sizeof(length) + length);
  Json json = Json::parse(header, nullptr, false);
  if (!json.is_object() || json.empty()) return;
  if (OneIn(random, 12)) {
    header = WithDuplicate(random, json);
  } else {
    auto it = json.begin();
    std::advance(it, random.Below(json.size()));
    if (OneIn(random, 3)) {
      EditMember(random, PickContainer(random, json));
    } else {
      EditTensor(random, *it);
    }
    header = json.dump();
  }
  const uint64_t said = OneIn(random, 20) ? EdgeNumber(random) : header.size();
  file = Length(said) + header + data;
}

void EditFolder(Random& random, FolderImage& folder) {
  switch (random.Below(12)) {
    case 0:
    case 1:
      return EditJson(random, folder.config);
    case 2:
    case 3:
    case 4:
      return EditKnownKey(random, folder);
    case 5:
      return EditJson(
          random, OneIn(random, 2) ? folder.generation_config : folder.index);
    case 6:
    case 7:
      return EditIndex(random, folder.index);
    case 8: {
      std::string& shard = Pick(random, folder.shards).bytes;
      if (OneIn(random, 3)) shard += "tail";
      shard = EditBytesOf(random, shard);
      return;
    }
    default:
      return EditHeader(random, Pick(random, folder.shards).bytes);
  }
}

}  // namespace

FolderImage ReadFolderImage(const std::string& path) {
  FolderImage folder;
  folder.config = ReadText(path + "/config.json");
  folder.generation_config = ReadText(path + "/generation_config.json");
  const std::string index = path + "/model.safetensors.index.json";
  std::vector<std::string> names = {"model.safetensors"};
  if (std::filesystem::exists(index)) {
    folder.index = ReadText(index);
    std::map<std::string, bool> shards;
    const Json places = Json::parse(folder.index);
    for (const auto& place : places.at("weight_map")) {
      shards[place.get<std::string>()] = true;
    }
    names.clear();
    for (const auto& [name, present] : shards) names.push_back(name);
  }
  for (const std::string& name : names) {
    folder.shards.push_back({name, ReadText(path + "/" + name)});
  }
  return folder;
}

HfMutator::HfMutator(uint64_t seed, std::vector<FolderImage> seeds)
    : random_(seed), seeds_(std::move(seeds)) {}

FolderImage HfMutator::Next() {
  FolderImage folder = Pick(random_, seeds_);
  // Mostly one fault: of two, the readers see only the first.
  for (uint64_t i = OneIn(random_, 6) ? 2 : 1; i > 0; --i) {
    EditFolder(random_, folder);
  }
  return folder;
}

}  // namespace penstock
