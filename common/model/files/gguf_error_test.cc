// One case for each check of the parser: a valid file with one thing wrong.

#include "common/model/files/model_error.h"

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/model/files/gguf_model.h"
#include "common/model/files/testing/tiny_llama.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "dir/bad.gguf";
constexpr char kQ[] = "blk.0.attn_q.weight";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kKinds[] = "tokenizer.ggml.token_type";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kScores[] = "tokenizer.ggml.scores";

struct Case {
  std::string what;
  ModelError error;
  std::string field;  // named by the message
  std::function<void(GgufDocument&)> edit;
  // Applied to the encoded file.
  std::function<void(std::vector<uint8_t>&)> cut = nullptr;
};

void EditStrings(GgufDocument& d, absl::string_view key,
                 const std::function<void(std::vector<std::string>&)>& edit) {
  std::vector<std::string> strings = StringsOf(*d.FindEntry(key));
  edit(strings);
  d.Set(StringsEntry(key, strings));
}

void EditKinds(GgufDocument& d,
               const std::function<void(std::vector<int32_t>&)>& edit) {
  std::vector<int32_t> kinds = Int32sOf(*d.FindEntry(kKinds));
  edit(kinds);
  d.Set(Int32sEntry(kKinds, kinds));
}

size_t TokenCount(GgufDocument& d) {
  return StringsOf(*d.FindEntry(kTokens)).size();
}

// Makes it a SentencePiece vocabulary of that many scores, one of them odd.
void SetScores(GgufDocument& d, size_t count, float first) {
  std::string elements = GgufNumber(first);
  for (size_t i = 1; i < count; ++i) elements += GgufNumber(-1.0f);
  d.Set(StringEntry("tokenizer.ggml.model", "llama"));
  d.Set({kScores, 9, GgufArray(GgufType::kFloat32, count, elements)});
}

GgufDocument::Entry Raw(absl::string_view key, uint32_t type,
                        std::string value) {
  return {std::string(key), type, std::move(value)};
}

// Arrays inside arrays, `depth` of them, each of one element.
GgufDocument::Entry Nested(int depth) {
  std::string value = GgufArray(GgufType::kUint8, 1, "x");
  for (int i = 1; i < depth; ++i) value = GgufArray(GgufType::kArray, 1, value);
  return Raw("x.nested", 9, value);
}

// Makes it a file of another family: its keys have that prefix.
void RenameFamily(GgufDocument& document, const std::string& family) {
  for (auto& entry : document.metadata) {
    if (entry.key.rfind("llama.", 0) == 0) {
      entry.key = family + entry.key.substr(5);
    }
  }
  document.Set(StringEntry("general.architecture", family));
}

std::vector<Case> ContainerCases() {
  using E = ModelError;
  using D = GgufDocument;
  auto nothing = [](D&) {};
  return {
      {"magic", E::kBadMagic, "magic", [](D& d) { d.magic = "GGML"; }},
      {"version 1", E::kUnsupportedVersion, "version",
       [](D& d) { d.version = 1; }},
      {"version 4", E::kUnsupportedVersion, "version",
       [](D& d) { d.version = 4; }},
      {"big-endian", E::kUnsupportedVersion, "big-endian",
       [](D& d) { d.version = 3u << 24; }},
      {"cut header", E::kTruncated, "metadata count", nothing,
       [](auto& bytes) { bytes.resize(20); }},
      {"3 bytes", E::kTruncated, "magic", nothing,
       [](auto& bytes) { bytes.resize(3); }},
      {"metadata count", E::kMetadataCount, "metadata count",
       [](D& d) { d.metadata_count = UINT64_MAX; }},
      {"tensor count", E::kTensorCount, "tensor count",
       [](D& d) { d.tensor_count = UINT64_MAX; }},
      {"empty key", E::kBadKey, "metadata key",
       [](D& d) { d.metadata[0].key = ""; }},
      {"binary key", E::kBadKey, "metadata key",
       [](D& d) { d.metadata[0].key = "a\nb"; }},
      {"long key", E::kBadKey, "metadata key",
       [](D& d) { d.metadata[0].key = std::string(65536, 'k'); }},
      {"duplicate key", E::kDuplicateKey, "general.architecture",
       [](D& d) { d.metadata.push_back(d.metadata[0]); }},
      {"value type", E::kValueType, "general.name type",
       [](D& d) { d.FindEntry("general.name")->type = 13; }},
      {"element type", E::kValueType, "x type",
       [](D& d) {
         d.Set(Raw("x", 9, GgufArray(static_cast<GgufType>(99), 0, "")));
       }},
      {"string length", E::kStringLength, "general.name",
       [](D& d) {
         d.FindEntry("general.name")->value = GgufNumber(UINT64_MAX);
       }},
      {"array length", E::kArrayLength, "x length",
       [](D& d) {
         d.Set(Raw("x", 9, GgufArray(GgufType::kUint64, UINT64_MAX / 8, "")));
       }},
      {"inner array length", E::kArrayLength, "x length",
       [](D& d) {
         d.Set(Raw("x", 9,
                   GgufArray(GgufType::kArray, 1,
                             GgufArray(GgufType::kString, 1 << 30, ""))));
       }},
      {"array nesting", E::kArrayNesting, "x.nested",
       [](D& d) { d.Set(Nested(5)); }},
      {"bad bool", E::kBadBool, "x", [](D& d) { d.Set(Raw("x", 7, "\2")); }},
      {"bad bool in array", E::kBadBool, "x",
       [](D& d) { d.Set(Raw("x", 9, GgufArray(GgufType::kBool, 2, "\1\2"))); }},
      {"alignment not a power of two", E::kAlignment, "general.alignment",
       [](D& d) { d.Set(Uint32Entry("general.alignment", 48)); }},
      {"alignment 0", E::kAlignment, "general.alignment",
       [](D& d) { d.Set(Uint32Entry("general.alignment", 0)); }},
      {"alignment absurd", E::kAlignment, "general.alignment",
       [](D& d) { d.Set(Uint32Entry("general.alignment", 1u << 31)); }},
  };
}

std::vector<Case> TensorCases() {
  using E = ModelError;
  using D = GgufDocument;
  return {
      {"empty tensor name", E::kTensorName, "tensor name",
       [](D& d) { d.tensors[0].name = ""; }},
      {"long tensor name", E::kTensorName, "tensor name",
       [](D& d) { d.tensors[0].name = std::string(65, 't'); }},
      {"duplicate tensor", E::kDuplicateTensor, kQ,
       [](D& d) { d.tensors.push_back(*d.FindTensor(kQ)); }},
      {"no dimensions", E::kDimensionCount, kQ,
       [](D& d) { d.FindTensor(kQ)->dimensions = {}; }},
      {"5 dimensions", E::kDimensionCount, kQ,
       [](D& d) {
         d.FindTensor(kQ)->dimensions = {32, 1, 1, 1, 1};
       }},
      {"zero dimension", E::kZeroDimension, kQ,
       [](D& d) { d.FindTensor(kQ)->dimensions[1] = 0; }},
      {"product overflows", E::kShapeOverflow, kQ,
       [](D& d) {
         d.FindTensor(kQ)->dimensions = {1u << 31, 1u << 31, 1u << 31};
       }},
      {"dimension overflows", E::kShapeOverflow, kQ,
       [](D& d) { d.FindTensor(kQ)->dimensions[0] = UINT64_MAX; }},
      {"byte size overflows", E::kShapeOverflow, "blk.0.attn_norm.weight",
       [](D& d) {
         d.FindTensor("blk.0.attn_norm.weight")->dimensions = {1ull << 62};
       }},
      {"type by name", E::kTensorType, "IQ3_S (21)",
       [](D& d) { d.FindTensor(kQ)->type = 21; }},
      {"type without a name", E::kTensorType, "unknown (4000)",
       [](D& d) { d.FindTensor(kQ)->type = 4000; }},
      {"partial block", E::kPartialBlock, kQ,
       [](D& d) { d.FindTensor(kQ)->dimensions[0] = 33; }},
      {"misaligned", E::kTensorAlignment, kQ,
       [](D& d) { d.FindTensor(kQ)->offset = 8; }},
      {"offset out of file", E::kTensorOutOfFile, kQ,
       [](D& d) { d.FindTensor(kQ)->offset = UINT64_MAX / 32 * 32; }},
      {"end out of file", E::kTensorOutOfFile, "blk.0.ffn_down.weight",
       [](D&) {}, [](auto& bytes) { bytes.pop_back(); }},
      {"no data section", E::kTensorOutOfFile, "token_embd.weight",
       [](D& d) {
         for (auto& tensor : d.tensors) tensor.data.clear();
         for (auto& tensor : d.tensors) tensor.offset = 0;
       }},
      {"overlap", E::kTensorOverlap, "offset 0 inside \"token_embd.weight\"",
       [](D& d) { d.FindTensor(kQ)->offset = 0; }},
      {"missing tensor", E::kMissingTensor, kQ,
       [](D& d) { d.FindTensor(kQ)->name = "other"; }},
      {"missing layer", E::kMissingTensor, "blk.1.attn_norm.weight",
       [](D& d) { d.Set(Uint32Entry("llama.block_count", 2)); }},
      {"transposed", E::kTensorShape, "blk.0.ffn_up.weight",
       [](D& d) {
         auto& dimensions = d.FindTensor("blk.0.ffn_up.weight")->dimensions;
         std::swap(dimensions[0], dimensions[1]);
       }},
      {"unexpected tensor", E::kUnexpectedTensor, "blk.0.ffn_gate.bias",
       [](D& d) {
         d.tensors.push_back(*d.FindTensor("blk.0.attn_norm.weight"));
         d.tensors.back().name = "blk.0.ffn_gate.bias";
       }},
  };
}

std::vector<Case> SpecCases() {
  using E = ModelError;
  using D = GgufDocument;
  return {
      {"missing key", E::kMissingKey, "llama.context_length",
       [](D& d) { d.Remove("llama.context_length"); }},
      {"no tokens", E::kMissingKey, kTokens, [](D& d) { d.Remove(kTokens); }},
      {"text for a number", E::kKeyType, "llama.block_count",
       [](D& d) { d.Set(StringEntry("llama.block_count", "1")); }},
      {"number for text", E::kKeyType, "general.architecture",
       [](D& d) { d.Set(Uint32Entry("general.architecture", 1)); }},
      {"array per layer", E::kKeyType, "llama.attention.head_count",
       [](D& d) { d.Set(Int32sEntry("llama.attention.head_count", {4})); }},
      {"integer for a float", E::kKeyType, "llama.rope.freq_base",
       [](D& d) { d.Set(Uint32Entry("llama.rope.freq_base", 10000)); }},
      {"kinds of 64 bits", E::kKeyType, kKinds,
       [](D& d) {
         d.Set(Raw(kKinds, 9, GgufArray(GgufType::kUint64, 0, "")));
       }},
      {"zero layers", E::kValueRange, "llama.block_count",
       [](D& d) { d.Set(Uint32Entry("llama.block_count", 0)); }},
      {"negative width", E::kValueRange, "llama.embedding_length",
       [](D& d) {
         d.Set(Raw("llama.embedding_length", 5, GgufNumber<int32_t>(-64)));
       }},
      {"absurd context", E::kValueRange, "llama.context_length",
       [](D& d) {
         d.Set(Raw("llama.context_length", 10, GgufNumber(UINT64_MAX)));
       }},
      {"NaN epsilon", E::kValueRange, "llama.attention.layer_norm_rms_epsilon",
       [](D& d) {
         d.Set(Float32Entry("llama.attention.layer_norm_rms_epsilon",
                            std::nanf("")));
       }},
      {"infinite rope base", E::kValueRange, "llama.rope.freq_base",
       [](D& d) { d.Set(Float32Entry("llama.rope.freq_base", INFINITY)); }},
      {"long name", E::kValueRange, "general.name",
       [](D& d) { d.Set(StringEntry("general.name", std::string(257, 'n'))); }},
      {"name not UTF-8", E::kBadUtf8, "general.name",
       [](D& d) { d.Set(StringEntry("general.name", "\xC0\x80")); }},
      {"token not UTF-8", E::kBadUtf8, "tokenizer.ggml.tokens[5]",
       [](D& d) {
         EditStrings(d, kTokens, [](auto& t) { t[5] = "\xED\xA0\x80"; });
       }},
      {"architecture", E::kArchitecture, "\"mamba\"",
       [](D& d) { d.Set(StringEntry("general.architecture", "mamba")); }},
      {"a window in a family without", E::kArchitecture, "sliding_window",
       [](D& d) { d.Set(Uint32Entry("llama.attention.sliding_window", 2)); }},
      {"KV heads do not divide", E::kHeadCount, "head_count_kv",
       [](D& d) { d.Set(Uint32Entry("llama.attention.head_count_kv", 3)); }},
      {"more KV heads than heads", E::kHeadCount, "head_count_kv",
       [](D& d) { d.Set(Uint32Entry("llama.attention.head_count_kv", 8)); }},
      {"heads do not divide the width", E::kHeadCount, "head_count",
       [](D& d) { d.Set(Uint32Entry("llama.attention.head_count", 6)); }},
      {"value length is not the tensor's", E::kTensorShape, "attn_v",
       [](D& d) { d.Set(Uint32Entry("llama.attention.value_length", 8)); }},
      {"groups do not divide the experts", E::kExpertCount,
       "expert_group_count",
       [](D& d) {
         d.Set(Uint32Entry("llama.expert_count", 4));
         d.Set(Uint32Entry("llama.expert_used_count", 2));
         d.Set(Uint32Entry("llama.expert_group_count", 3));
       }},
      {"groups hold too few experts", E::kExpertCount, "expert_used_count",
       [](D& d) {
         d.Set(Uint32Entry("llama.expert_count", 4));
         d.Set(Uint32Entry("llama.expert_used_count", 2));
         d.Set(Uint32Entry("llama.expert_group_count", 4));
         d.Set(Uint32Entry("llama.expert_group_used_count", 1));
       }},
      {"all of a latent key rotates", E::kLatentWidth, "key_length",
       [](D& d) {
         RenameFamily(d, "deepseek2");
         d.Set(Uint32Entry("deepseek2.attention.kv_lora_rank", 16));
         d.Set(Uint32Entry("deepseek2.rope.dimension_count", 16));
         d.Set(Uint32Entry("deepseek2.attention.key_length", 16));
         d.Set(Uint32Entry("deepseek2.attention.value_length", 16));
       }},
      {"odd rotation", E::kRopeDimensions, "rope.dimension_count",
       [](D& d) { d.Set(Uint32Entry("llama.rope.dimension_count", 15)); }},
      {"rotation wider than a head", E::kRopeDimensions, "rope.dimension_count",
       [](D& d) { d.Set(Uint32Entry("llama.rope.dimension_count", 18)); }},
      {"rope scaling", E::kRopeScaling, "\"mystery\"",
       [](D& d) { d.Set(StringEntry("llama.rope.scaling.type", "mystery")); }},
      {"YaRN shrinks", E::kValueRange, "rope.scaling.factor",
       [](D& d) {
         d.Set(StringEntry("llama.rope.scaling.type", "yarn"));
         d.Set(Float32Entry("llama.rope.scaling.factor", 0.5f));
       }},
      {"old rope scaling", E::kValueRange, "rope.scale_linear",
       [](D& d) { d.Set(Float32Entry("llama.rope.scale_linear", 0.5f)); }},
  };
}

std::vector<Case> VocabularyCases() {
  using E = ModelError;
  using D = GgufDocument;
  return {
      {"tokenizer model", E::kTokenizerModel, "\"rwkv\"",
       [](D& d) { d.Set(StringEntry("tokenizer.ggml.model", "rwkv")); }},
      {"no scores", E::kMissingKey, kScores,
       [](D& d) { d.Set(StringEntry("tokenizer.ggml.model", "llama")); }},
      {"a score too few", E::kTokenScores, kScores,
       [](D& d) { SetScores(d, TokenCount(d) - 1, 0.0f); }},
      {"an infinite score", E::kTokenScores, "tokenizer.ggml.scores[0]",
       [](D& d) { SetScores(d, TokenCount(d), INFINITY); }},
      {"map of characters", E::kTokenizerModel, "precompiled_charsmap",
       [](D& d) {
         SetScores(d, TokenCount(d), 0.0f);
         d.Set(StringEntry("tokenizer.ggml.precompiled_charsmap", "x"));
       }},
      {"vocab_size", E::kVocabularySize, "llama.vocab_size, which is 7",
       [](D& d) { d.Set(Uint32Entry("llama.vocab_size", 7)); }},
      {"no token at all", E::kVocabularySize, kTokens,
       [](D& d) { EditStrings(d, kTokens, [](auto& t) { t.clear(); }); }},
      {"a token more than rows", E::kTensorShape, "token_embd.weight",
       [](D& d) {
         EditStrings(d, kTokens, [](auto& t) { t.push_back("more"); });
       }},
      {"a kind too few", E::kTokenKindCount, kKinds,
       [](D& d) { EditKinds(d, [](auto& kinds) { kinds.pop_back(); }); }},
      {"kind 0", E::kTokenKind, "tokenizer.ggml.token_type[4]",
       [](D& d) { EditKinds(d, [](auto& kinds) { kinds[4] = 0; }); }},
      {"kind 7", E::kTokenKind, "tokenizer.ggml.token_type[4]",
       [](D& d) { EditKinds(d, [](auto& kinds) { kinds[4] = 7; }); }},
      {"empty token", E::kEmptyToken, "tokenizer.ggml.tokens[6]",
       [](D& d) { EditStrings(d, kTokens, [](auto& t) { t[6] = ""; }); }},
      {"duplicate token", E::kDuplicateToken, "tokenizer.ggml.tokens[6]",
       [](D& d) { EditStrings(d, kTokens, [](auto& t) { t[6] = t[5]; }); }},
      {"merge without a space", E::kMergeSyntax, "tokenizer.ggml.merges[2]",
       [](D& d) { EditStrings(d, kMerges, [](auto& m) { m[2] = "in"; }); }},
      {"merge with two spaces", E::kMergeSyntax, "tokenizer.ggml.merges[2]",
       [](D& d) { EditStrings(d, kMerges, [](auto& m) { m[2] = "i n g"; }); }},
      {"merge with an empty part", E::kMergeSyntax, "tokenizer.ggml.merges[2]",
       [](D& d) { EditStrings(d, kMerges, [](auto& m) { m[2] = " n"; }); }},
      {"merge of no token", E::kMergeToken, "tokenizer.ggml.merges[2]",
       [](D& d) { EditStrings(d, kMerges, [](auto& m) { m[2] = "i #"; }); }},
      {"merge into no token", E::kMergeToken, "tokenizer.ggml.merges[2]",
       [](D& d) { EditStrings(d, kMerges, [](auto& m) { m[2] = "n n"; }); }},
      {"duplicate merge", E::kDuplicateMerge, "tokenizer.ggml.merges[2]",
       [](D& d) { EditStrings(d, kMerges, [](auto& m) { m[2] = m[1]; }); }},
      {"eos out of range", E::kTokenId, "tokenizer.ggml.eos_token_id",
       [](D& d) { d.Set(Uint32Entry("tokenizer.ggml.eos_token_id", 9999)); }},
      {"negative bos", E::kTokenId, "tokenizer.ggml.bos_token_id",
       [](D& d) {
         d.Set(Raw("tokenizer.ggml.bos_token_id", 5, GgufNumber<int32_t>(-1)));
       }},
  };
}

std::vector<Case> AllCases() {
  std::vector<Case> all;
  for (auto part :
       {ContainerCases(), TensorCases(), SpecCases(), VocabularyCases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

GgufDocument Valid() {
  return MakeTinyLlama({.layers = 1, .all_bytes = false});
}

TEST(GgufErrorTest, EachWrongThingIsNamed) {
  ASSERT_TRUE(ReadGgufModel(Valid().Encode(), kPath).ok());
  for (const Case& c : AllCases()) {
    SCOPED_TRACE(c.what);
    GgufDocument document = Valid();
    c.edit(document);
    std::vector<uint8_t> bytes = document.Encode();
    if (c.cut) c.cut(bytes);
    absl::Status status = ReadGgufModel(bytes, kPath).status();
    std::string message(status.message());
    auto error = ModelErrorOf(status);
    ASSERT_TRUE(error.has_value()) << status;
    EXPECT_EQ(ModelErrorName(*error), ModelErrorName(c.error)) << status;
    EXPECT_THAT(message, testing::StartsWith("dir/bad.gguf: "));
    EXPECT_THAT(message, HasSubstr(c.field));
    EXPECT_THAT(message, HasSubstr("expected "));
    EXPECT_LT(message.size(), 1000u);
  }
}

TEST(GgufErrorTest, EachCodeHasACase) {
  std::set<ModelError> covered;
  for (const Case& c : AllCases()) covered.insert(c.error);
  for (ModelError error : ModelErrorsOf(ModelFormat::kGguf)) {
    if (error == ModelError::kSplit) continue;  // see gguf_split_test.cc
    EXPECT_TRUE(covered.contains(error)) << ModelErrorName(error);
  }
}

TEST(GgufErrorTest, UnknownIsUnimplementedAndWrongIsInvalid) {
  GgufDocument document = Valid();
  document.Set(StringEntry("general.architecture", "mamba"));
  EXPECT_TRUE(
      absl::IsUnimplemented(ReadGgufModel(document.Encode(), kPath).status()));
  document = Valid();
  document.Remove("general.architecture");
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadGgufModel(document.Encode(), kPath).status()));
}

TEST(GgufErrorTest, OtherStatusesHaveNoCode) {
  EXPECT_FALSE(ModelErrorOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(ModelErrorOf(absl::NotFoundError("x")).has_value());
}

// Cut anywhere, a file is refused with a code, never read past its end.
TEST(GgufErrorTest, EveryPrefixIsRefused) {
  std::vector<uint8_t> whole = Valid().Encode();
  for (size_t size = 0; size < whole.size(); size += size < 4096 ? 1 : 97) {
    // An allocation of this size, so that a sanitizer sees one byte too far.
    std::vector<uint8_t> prefix(whole.begin(), whole.begin() + size);
    absl::Status status = ReadGgufModel(prefix, kPath).status();
    ASSERT_TRUE(ModelErrorOf(status).has_value()) << size << " " << status;
  }
}

TEST(GgufErrorTest, TextOfTheFileIsEscapedAndCut) {
  EXPECT_EQ(QuoteForError("a\n\"\xFF"), "\"a\\n\\\"\\xff\"");
  EXPECT_THAT(QuoteForError(std::string(1000, 'a')),
              HasSubstr("920 bytes more"));
}

}  // namespace
}  // namespace penstock
