#include "common/model/files/testing/tiny_llama.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/env/random.h"
#include "common/model/files/content_hash.h"
#include "common/model/files/gguf_model.h"
#include "common/model/files/testing/tensor_encoding.h"

namespace penstock {
namespace {

constexpr char kChatMl[] =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

// Pairs in order of rank; "_" stands for the space.
constexpr const char* kMerges[][2] = {
    {"_", "t"},   {"_", "a"},  {"i", "n"},   {"h", "e"},    {"r", "e"},
    {"o", "n"},   {"e", "r"},  {"_t", "he"}, {"a", "t"},    {"_", "s"},
    {"e", "n"},   {"o", "r"},  {"_", "w"},   {"i", "s"},    {"l", "l"},
    {"o", "u"},   {"_a", "n"}, {"n", "d"},   {"in", "g"},   {"_", "h"},
    {"_an", "d"}, {"l", "o"},  {"_h", "e"},  {"_he", "ll"}, {"_hell", "o"},
    {"_", "_"},
};

void AppendUtf8(std::string& out, uint32_t code) {  // below U+0800
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else {
    out.push_back(static_cast<char>(0xC0 | code >> 6));
    out.push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

// GPT-2's byte-level alphabet: printable Latin-1 stands for itself, the other
// bytes for U+0100 onwards in order.
std::string ByteToken(int byte) {
  auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  uint32_t code = byte;
  if (!printable(byte)) {
    code = 0x100;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  std::string token;
  AppendUtf8(token, code);
  return token;
}

std::string InAlphabet(absl::string_view text) {
  std::string out;
  for (char c : text) out += ByteToken(c == '_' ? ' ' : c);
  return out;
}

bool UsedByMerges(int byte) {
  for (auto [left, right] : kMerges) {
    for (char c : absl::StrCat(left, right)) {
      if ((c == '_' ? ' ' : c) == byte) return true;
    }
  }
  return false;
}

int AddVocabulary(const TinyLlamaOptions& options, GgufDocument& document) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>",
                                     "<|im_end|>"};
  constexpr int32_t kNormal = 1, kControl = 3;
  std::vector<int32_t> kinds(tokens.size(), kControl);
  for (int byte = 0; byte < 256; ++byte) {
    if (options.all_bytes || UsedByMerges(byte)) {
      tokens.push_back(ByteToken(byte));
    }
  }
  std::vector<std::string> merges;
  for (auto [left, right] : kMerges) {
    merges.push_back(absl::StrCat(InAlphabet(left), " ", InAlphabet(right)));
    tokens.push_back(InAlphabet(absl::StrCat(left, right)));
  }
  kinds.resize(tokens.size(), kNormal);
  document.Set(StringEntry("tokenizer.ggml.model", "gpt2"));
  document.Set(StringEntry("tokenizer.ggml.pre", "smollm"));
  document.Set(StringsEntry("tokenizer.ggml.tokens", tokens));
  document.Set(Int32sEntry("tokenizer.ggml.token_type", kinds));
  document.Set(StringsEntry("tokenizer.ggml.merges", merges));
  document.Set(Uint32Entry("tokenizer.ggml.bos_token_id", 1));
  document.Set(Uint32Entry("tokenizer.ggml.eos_token_id", 2));
  document.Set(Uint32Entry("tokenizer.ggml.unknown_token_id", 0));
  document.Set(BoolEntry("tokenizer.ggml.add_bos_token", false));
  document.Set(StringEntry("tokenizer.chat_template", kChatMl));
  return static_cast<int>(tokens.size());
}

void AddSpec(const TinyLlamaOptions& options, GgufDocument& document) {
  document.Set(StringEntry("general.architecture", "llama"));
  document.Set(StringEntry("general.name", "tiny"));
  document.Set(Uint32Entry("llama.block_count", options.layers));
  document.Set(Uint32Entry("llama.context_length", options.context_length));
  document.Set(Uint32Entry("llama.embedding_length", options.hidden));
  document.Set(Uint32Entry("llama.feed_forward_length", options.ffn));
  document.Set(Uint32Entry("llama.attention.head_count", options.heads));
  document.Set(Uint32Entry("llama.attention.head_count_kv", options.kv_heads));
  document.Set(Float32Entry("llama.attention.layer_norm_rms_epsilon", 1e-5f));
  document.Set(Float32Entry("llama.rope.freq_base", 10000.0f));
}

// Adds tensors of random values.
class TensorWriter {
 public:
  TensorWriter(GgufDocument& document, uint64_t seed)
      : document_(document), random_(seed) {}

  // Uniform with the deviation that keeps the width of activations.
  void Matrix(const std::string& name, int out, int in, TensorType type) {
    float reach = std::sqrt(3.0f / static_cast<float>(in));
    Add(name, {static_cast<uint64_t>(in), static_cast<uint64_t>(out)}, type,
        -reach, reach);
  }
  void Norm(const std::string& name, int width) {
    Add(name, {static_cast<uint64_t>(width)}, TensorType::kF32, 0.5f, 1.5f);
  }

 private:
  void Add(const std::string& name, std::vector<uint64_t> dimensions,
           TensorType type, float low, float high) {
    size_t elements = 1;
    for (uint64_t dimension : dimensions) elements *= dimension;
    std::vector<float> values(elements);
    for (float& value : values) {
      value = low + (high - low) * static_cast<float>(random_.Uniform());
    }
    document_.tensors.push_back({.name = name,
                                 .dimensions = std::move(dimensions),
                                 .type = Traits(type).gguf_id,
                                 .data = EncodeTensor(type, values)});
  }

  GgufDocument& document_;
  SeededRandom random_;
};

void AddWeights(const TinyLlamaOptions& options, int vocabulary,
                GgufDocument& document) {
  TensorWriter writer(document, options.seed);
  const int head_dim = options.hidden / options.heads;
  const int kv = options.kv_heads * head_dim;
  size_t turn = 0;
  auto next_type = [&] {
    return options.matrix_types[turn++ % options.matrix_types.size()];
  };
  writer.Matrix("token_embd.weight", vocabulary, options.hidden,
                options.embedding_type);
  writer.Norm("output_norm.weight", options.hidden);
  if (!options.tied_head) {
    writer.Matrix("output.weight", vocabulary, options.hidden,
                  options.embedding_type);
  }
  for (int i = 0; i < options.layers; ++i) {
    auto matrix = [&](absl::string_view name, int out, int in) {
      writer.Matrix(absl::StrCat("blk.", i, ".", name, ".weight"), out, in,
                    next_type());
    };
    writer.Norm(absl::StrCat("blk.", i, ".attn_norm.weight"), options.hidden);
    matrix("attn_q", options.hidden, options.hidden);
    matrix("attn_k", kv, options.hidden);
    matrix("attn_v", kv, options.hidden);
    matrix("attn_output", options.hidden, options.hidden);
    writer.Norm(absl::StrCat("blk.", i, ".ffn_norm.weight"), options.hidden);
    matrix("ffn_gate", options.ffn, options.hidden);
    matrix("ffn_up", options.ffn, options.hidden);
    matrix("ffn_down", options.hidden, options.ffn);
  }
}

// A model whose bytes are in memory.
class MemoryModelFile final : public ModelFile {
 public:
  MemoryModelFile(std::vector<uint8_t> bytes, ModelContent content)
      : bytes_(std::move(bytes)), content_(std::move(content)) {}

  const ModelSpec& spec() const override { return content_.spec; }
  const ModelWeights& weights() const override { return content_.weights; }
  const Vocabulary& vocabulary() const override { return content_.vocabulary; }
  const std::string& chat_template() const override {
    return content_.chat_template;
  }

 private:
  std::vector<uint8_t> bytes_;  // moved in: the views stay valid
  ModelContent content_;
};

}  // namespace

GgufDocument MakeTinyLlama(const TinyLlamaOptions& options) {
  CHECK(options.hidden % options.heads == 0 && !options.matrix_types.empty());
  GgufDocument document;
  AddSpec(options, document);
  int vocabulary = AddVocabulary(options, document);
  AddWeights(options, vocabulary, document);
  return document;
}

absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelBytes(
    std::vector<uint8_t> bytes) {
  ASSIGN_OR_RETURN(ModelContent content, ReadGgufModel(bytes, "memory.gguf"));
  content.spec.content = HashContent({bytes}, 0, SerialFor, nullptr);
  return std::make_unique<MemoryModelFile>(std::move(bytes),
                                           std::move(content));
}

std::unique_ptr<ModelFile> OpenTinyLlama(const TinyLlamaOptions& options) {
  auto opened = OpenModelBytes(MakeTinyLlama(options).Encode());
  CHECK(opened.ok()) << opened.status().ToString();
  return *std::move(opened);
}

}  // namespace penstock
