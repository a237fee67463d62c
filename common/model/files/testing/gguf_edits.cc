#include "common/model/files/testing/gguf_edits.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/model/files/testing/byte_edits.h"

namespace penstock {
namespace {

using Entry = GgufDocument::Entry;
using Tensor = GgufDocument::Tensor;

constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kKinds[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";

std::string RandomBytes(Random& random, size_t most) {
  std::string bytes(random.Below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Next());
  return bytes;
}

std::string RandomText(Random& random) {
  constexpr absl::string_view kTexts[] = {
      "",           "llama", "gpt2",         "none",
      "linear",     "mamba", "general.name", "token_embd.weight",
      "<|im_end|>", "t",     "\xC0\x80",     "\xED\xA0\x80",
      "\xF5",       "a b",   " a",           "a ",
      "he ll o",
  };
  switch (random.Below(4)) {
    case 0:
      return RandomBytes(random, 12);
    case 1:  // past one of the length limits
      return std::string(65 + random.Below(300), 'x');
    default:
      return std::string(Pick(random, kTexts));
  }
}

// The document's header.

void EditHeader(Random& random, GgufDocument& document) {
  switch (random.Below(4)) {
    case 0:
      if (OneIn(random, 2)) {
        Pick(random, document.magic) = static_cast<char>(random.Next());
      } else {
        document.magic = "GGML";
      }
      break;
    case 1:
      document.version = static_cast<uint32_t>(EdgeNumber(random));
      break;
    case 2:
      document.tensor_count = EdgeNumber(random);
      break;
    default:
      document.metadata_count = EdgeNumber(random);
  }
}

// Entries, whatever they mean.

// Any value of any type, sometimes not a type at all.
Entry RandomValue(Random& random, std::string key) {
  uint32_t type = static_cast<uint32_t>(random.Below(14));
  std::string value;
  switch (static_cast<GgufType>(type)) {
    case GgufType::kString:
      value = GgufString(RandomText(random));
      break;
    case GgufType::kArray: {
      auto element = static_cast<GgufType>(random.Below(14));
      value = GgufArray(element, random.Below(4), std::string(64, '\0'));
      break;
    }
    default:
      value = GgufNumber(EdgeNumber(random));
  }
  return {std::move(key), type, value};
}

void RenameKey(Random& random, Entry& entry) {
  switch (random.Below(4)) {
    case 0:
      entry.key.clear();
      break;
    case 1:
      entry.key += static_cast<char>(random.Next());
      break;
    case 2:
      entry.key = std::string(65530 + random.Below(12), 'k');
      break;
    default:
      entry.key = RandomText(random);
  }
}

// An integer of a width and sign that keys accept, at an edge.
Entry EdgeInteger(Random& random, std::string key) {
  uint64_t value = OneIn(random, 2) ? random.Below(70) : EdgeNumber(random);
  switch (random.Below(5)) {
    case 0:
      return {std::move(key), 10, GgufNumber(value)};
    case 1:
      return {std::move(key), 5, GgufNumber(static_cast<int32_t>(value))};
    case 2:
      return {std::move(key), 0, GgufNumber(static_cast<uint8_t>(value))};
    default:
      return Uint32Entry(key, static_cast<uint32_t>(value));
  }
}

void EditLength(Random& random, Entry& entry) {
  constexpr uint32_t kStringType = 8, kArrayType = 9;
  size_t at = entry.type == kStringType ? 0 : 4;
  if (entry.type != kStringType && entry.type != kArrayType) return;
  if (entry.value.size() < at + 8) return;
  entry.value.replace(at, 8, GgufNumber(EdgeNumber(random)));
}

void EditElementType(Random& random, Entry& entry) {
  if (entry.value.size() < 12) return;
  entry.value.replace(0, 4,
                      GgufNumber(static_cast<uint32_t>(random.Below(16))));
}

Entry NestedArrays(Random& random) {
  std::string value = GgufArray(GgufType::kUint16, 2, "abcd");
  for (uint64_t depth = random.Below(8); depth > 0; --depth) {
    value = GgufArray(GgufType::kArray, 1, value);
  }
  return {"x.nested", 9, value};
}

void EditEntry(Random& random, GgufDocument& document) {
  if (document.metadata.empty()) return;
  Entry& entry = Pick(random, document.metadata);
  switch (random.Below(9)) {
    case 0:
      document.metadata.erase(document.metadata.begin() +
                              (&entry - document.metadata.data()));
      break;
    case 1:
      document.metadata.push_back(Entry(entry));
      break;
    case 2:
      RenameKey(random, entry);
      break;
    case 3:
      entry.type = static_cast<uint32_t>(OneIn(random, 4) ? EdgeNumber(random)
                                                          : random.Below(14));
      break;
    case 4:
      entry = RandomValue(random, entry.key);
      break;
    case 5:
      EditLength(random, entry);
      break;
    case 6:
      EditElementType(random, entry);
      break;
    case 7:
      document.Set(NestedArrays(random));
      break;
    default:
      std::swap(entry, Pick(random, document.metadata));
  }
}

// Entries by their meaning.

void EditSpec(Random& random, GgufDocument& document) {
  constexpr absl::string_view kIntegers[] = {
      "llama.block_count",
      "llama.context_length",
      "llama.embedding_length",
      "llama.feed_forward_length",
      "llama.attention.head_count",
      "llama.attention.head_count_kv",
      "llama.attention.key_length",
      "llama.attention.value_length",
      "llama.rope.dimension_count",
      "llama.vocab_size",
      "general.alignment",
      "split.no",
      "split.count",
      "split.tensors.count",
  };
  constexpr absl::string_view kFloats[] = {
      "llama.attention.layer_norm_rms_epsilon",
      "llama.rope.freq_base",
      "llama.rope.scale_linear",
  };
  constexpr absl::string_view kStrings[] = {
      "general.architecture",    "general.name",
      "tokenizer.ggml.model",    "tokenizer.ggml.pre",
      "llama.rope.scaling.type", "tokenizer.chat_template",
  };
  const float floats[] = {0.0f,
                          -1.0f,
                          1.0f,
                          1e-20f,
                          1e20f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  switch (random.Below(4)) {
    case 0:
    case 1:
      document.Set(EdgeInteger(random, std::string(Pick(random, kIntegers))));
      break;
    case 2:
      document.Set(Float32Entry(Pick(random, kFloats), Pick(random, floats)));
      break;
    default:
      document.Set(StringEntry(Pick(random, kStrings), RandomText(random)));
  }
}

// Gives the file the keys of another family, which its tensors are not of.
void EditFamily(Random& random, GgufDocument& document) {
  constexpr absl::string_view kFamilies[] = {
      "deepseek2", "gemma3", "granite", "llama", "phi3", "qwen3moe", "smollm3"};
  constexpr absl::string_view kKeys[] = {
      "expert_count",           "expert_used_count",
      "expert_group_count",     "expert_group_used_count",
      "attention.kv_lora_rank", "attention.q_lora_rank",
      "attention.key_length",   "attention.value_length",
      "rope.dimension_count",   "attention.sliding_window",
  };
  const std::string family(Pick(random, kFamilies));
  for (Entry& entry : document.metadata) {
    if (entry.key.rfind("llama.", 0) == 0) {
      entry.key = family + entry.key.substr(5);
    }
  }
  document.Set(StringEntry("general.architecture", family));
  for (absl::string_view key : kKeys) {
    if (OneIn(random, 4)) continue;
    document.Set(Uint32Entry(family + "." + std::string(key),
                             static_cast<uint32_t>(random.Below(9))));
  }
}

void EditStrings(Random& random, std::vector<std::string>& strings) {
  if (strings.empty()) return;
  std::string& text = Pick(random, strings);
  switch (random.Below(6)) {
    case 0:
      text.clear();
      break;
    case 1:
      text = Pick(random, strings);
      break;
    case 2:
      text = RandomText(random);
      break;
    case 3:
      strings.push_back(RandomText(random));
      break;
    case 4:
      strings.pop_back();
      break;
    default:
      std::swap(text, Pick(random, strings));
  }
}

void EditKinds(Random& random, std::vector<int32_t>& kinds) {
  if (kinds.empty()) return;
  switch (random.Below(3)) {
    case 0:
      kinds.pop_back();
      break;
    case 1:
      kinds.push_back(1);
      break;
    default:
      Pick(random, kinds) = static_cast<int32_t>(
          OneIn(random, 2) ? random.Below(9) : EdgeNumber(random));
  }
}

// Makes it a SentencePiece vocabulary, whose scores may be wrong.
void EditScores(Random& random, GgufDocument& document) {
  const Entry* tokens = document.FindEntry(kTokens);
  if (tokens == nullptr) return;
  size_t count = StringsOf(*tokens).size();
  if (OneIn(random, 3)) count = random.Below(count + 2);
  std::string scores;
  for (size_t i = 0; i < count; ++i) {
    scores += OneIn(random, 3)
                  ? GgufNumber(static_cast<uint32_t>(random.Next()))
                  : GgufNumber(-1.0f);
  }
  document.Set(
      StringEntry("tokenizer.ggml.model", OneIn(random, 2) ? "llama" : "t5"));
  document.Set({"tokenizer.ggml.scores",
                static_cast<uint32_t>(GgufType::kArray),
                GgufArray(GgufType::kFloat32, count, scores)});
}

void EditVocabulary(Random& random, GgufDocument& document) {
  constexpr absl::string_view kIds[] = {"bos", "eos", "unknown", "eot", "eom"};
  switch (random.Below(5)) {
    case 4:
      EditScores(random, document);
      break;
    case 0:
      document.Set(EdgeInteger(
          random,
          "tokenizer.ggml." + std::string(Pick(random, kIds)) + "_token_id"));
      break;
    case 1:
      if (Entry* entry = document.FindEntry(kKinds)) {
        std::vector<int32_t> kinds = Int32sOf(*entry);
        EditKinds(random, kinds);
        *entry = Int32sEntry(kKinds, kinds);
      }
      break;
    default: {
      const char* key = OneIn(random, 2) ? kTokens : kMerges;
      if (Entry* entry = document.FindEntry(key)) {
        std::vector<std::string> strings = StringsOf(*entry);
        EditStrings(random, strings);
        *entry = StringsEntry(key, strings);
      }
    }
  }
}

// Tensors.

void RenameTensor(Random& random, GgufDocument& document, Tensor& tensor) {
  switch (random.Below(3)) {
    case 0:
      tensor.name.clear();
      break;
    case 1:
      tensor.name = Pick(random, document.tensors).name;
      break;
    default:
      tensor.name = RandomText(random);
  }
}

void EditShape(Random& random, Tensor& tensor) {
  switch (random.Below(5)) {
    case 0:
      tensor.dimensions.clear();
      break;
    case 1:
      tensor.dimensions.resize(random.Below(7), 1);
      break;
    case 2:
      std::reverse(tensor.dimensions.begin(), tensor.dimensions.end());
      break;
    default:
      if (tensor.dimensions.empty()) break;
      Pick(random, tensor.dimensions) =
          OneIn(random, 2) ? EdgeNumber(random) : random.Below(70);
  }
}

void EditOffset(Random& random, GgufDocument& document, Tensor& tensor) {
  switch (random.Below(3)) {
    case 0:
      tensor.offset = EdgeNumber(random);
      break;
    case 1:
      tensor.offset =
          EdgeNumber(random) / document.alignment * document.alignment;
      break;
    default:  // somewhere inside the file
      tensor.offset = random.Below(256) * document.alignment;
  }
}

void EditTensor(Random& random, GgufDocument& document) {
  if (document.tensors.empty()) return;
  Tensor& tensor = Pick(random, document.tensors);
  switch (random.Below(8)) {
    case 0:
      document.tensors.erase(document.tensors.begin() +
                             (&tensor - document.tensors.data()));
      break;
    case 1:
      document.tensors.push_back(Tensor(tensor));
      if (OneIn(random, 2)) document.tensors.back().name = "blk.0.extra.weight";
      break;
    case 2:
      RenameTensor(random, document, tensor);
      break;
    case 3:
    case 4:
      EditShape(random, tensor);
      break;
    case 5:
      tensor.type = static_cast<uint32_t>(OneIn(random, 2) ? EdgeNumber(random)
                                                           : random.Below(41));
      break;
    case 6:
      EditOffset(random, document, tensor);
      break;
    default:
      tensor.data.resize(random.Below(tensor.data.size() + 64));
  }
}

}  // namespace

void EditStructure(Random& random, GgufDocument& document) {
  switch (random.Below(11)) {
    case 0:
      return EditHeader(random, document);
    case 10:
      return EditFamily(random, document);
    case 1:
    case 2:
      return EditEntry(random, document);
    case 3:
    case 4:
    case 5:
      return EditSpec(random, document);
    case 6:
    case 7:
      return EditVocabulary(random, document);
    default:
      return EditTensor(random, document);
  }
}

}  // namespace penstock
