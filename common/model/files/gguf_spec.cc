#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/files/gguf_model.h"

namespace penstock {
namespace {

// Model families that the forward pass can run.
struct Family {
  absl::string_view architecture;
  RopePairing pairing;
};
constexpr Family kFamilies[] = {{"llama", RopePairing::kInterleaved}};

// Far beyond known models; they keep products of two within 63 bits and of
// heads and their width within an int.
constexpr IntegerRange kLayers = {1, 4096};
constexpr IntegerRange kContext = {1, 1 << 24};
constexpr IntegerRange kWidth = {1, 1 << 20};
constexpr IntegerRange kFfn = {1, 1 << 24};
constexpr IntegerRange kHeads = {1, 1 << 14};
constexpr IntegerRange kHeadDim = {1, 1 << 14};
constexpr IntegerRange kVocabulary = {1, 1 << 24};
constexpr FloatRange kEpsilon = {1e-12, 1e-1};
constexpr FloatRange kRopeBase = {1.0, 1e12};
constexpr size_t kMaxNameBytes = 256;

// Reads the keys of one family: "llama.block_count", ...
class SpecReader {
 public:
  SpecReader(const GgufReader& reader, const Family& family)
      : reader_(reader),
        metadata_(reader.metadata()),
        prefix_(absl::StrCat(family.architecture, ".")),
        family_(family) {}

  absl::StatusOr<ModelSpec> Read() {
    spec_.architecture = std::string(family_.architecture);
    RETURN_IF_ERROR(ReadName());
    RETURN_IF_ERROR(ReadSizes());
    RETURN_IF_ERROR(ReadHeads());
    RETURN_IF_ERROR(ReadRope());
    spec_.value_dim = spec_.head_dim;
    spec_.score_scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim));
    spec_.layer_specs.resize(spec_.layers);
    return std::move(spec_);
  }

 private:
  std::string Key(absl::string_view name) const {
    return absl::StrCat(prefix_, name);
  }
  absl::StatusOr<int64_t> Integer(absl::string_view name,
                                  IntegerRange range) const {
    return metadata_.Integer(Key(name), range);
  }
  absl::Status Error(GgufError error, absl::string_view name, std::string found,
                     std::string expected) const {
    return reader_.errors().Make(error, {.field = Key(name),
                                         .found = std::move(found),
                                         .expected = std::move(expected)});
  }

  absl::Status ReadName() {
    absl::string_view stem = reader_.errors().path();
    stem = stem.substr(stem.rfind('/') + 1);  // npos + 1 is 0
    stem = stem.substr(0, stem.rfind('.'));
    ASSIGN_OR_RETURN(absl::string_view name,
                     metadata_.StringOr("general.name", stem));
    if (name.size() > kMaxNameBytes) {
      return reader_.errors().Make(
          GgufError::kValueRange,
          {.field = "general.name",
           .found = absl::StrCat(name.size(), " bytes"),
           .expected = absl::StrCat("at most ", kMaxNameBytes)});
    }
    spec_.name = std::string(name);
    return absl::OkStatus();
  }

  absl::Status ReadSizes() {
    ASSIGN_OR_RETURN(spec_.layers, Integer("block_count", kLayers));
    ASSIGN_OR_RETURN(spec_.context_length, Integer("context_length", kContext));
    ASSIGN_OR_RETURN(spec_.hidden, Integer("embedding_length", kWidth));
    ASSIGN_OR_RETURN(spec_.ffn, Integer("feed_forward_length", kFfn));
    ASSIGN_OR_RETURN(
        spec_.norm_epsilon,
        metadata_.Float(Key("attention.layer_norm_rms_epsilon"), kEpsilon));
    ASSIGN_OR_RETURN(uint64_t tokens,
                     metadata_.ArrayLength("tokenizer.ggml.tokens"));
    ASSIGN_OR_RETURN(int64_t declared,
                     metadata_.IntegerOr(Key("vocab_size"), {}, tokens));
    if (static_cast<uint64_t>(declared) != tokens || tokens < 1 ||
        tokens > static_cast<uint64_t>(kVocabulary.high)) {
      return reader_.errors().Make(
          GgufError::kVocabularySize,
          {.field = "tokenizer.ggml.tokens",
           .found = absl::StrCat(tokens, " tokens"),
           .expected = absl::StrCat(Key("vocab_size"), ", which is ", declared,
                                    ", from ", kVocabulary.low, " to ",
                                    kVocabulary.high)});
    }
    spec_.vocab_size = static_cast<int>(tokens);
    return absl::OkStatus();
  }

  absl::Status ReadHeads() {
    ASSIGN_OR_RETURN(spec_.heads, Integer("attention.head_count", kHeads));
    ASSIGN_OR_RETURN(spec_.kv_heads,
                     metadata_.IntegerOr(Key("attention.head_count_kv"), kHeads,
                                         spec_.heads));
    if (spec_.heads % spec_.kv_heads != 0) {
      return Error(GgufError::kHeadCount, "attention.head_count_kv",
                   absl::StrCat(spec_.kv_heads),
                   absl::StrCat("a divisor of the ", spec_.heads, " heads"));
    }
    std::string key_length = Key("attention.key_length");
    if (metadata_.Find(key_length) == nullptr &&
        spec_.hidden % spec_.heads != 0) {
      return Error(GgufError::kHeadCount, "attention.head_count",
                   absl::StrCat(spec_.heads),
                   absl::StrCat("a divisor of the width ", spec_.hidden));
    }
    ASSIGN_OR_RETURN(
        spec_.head_dim,
        metadata_.IntegerOr(key_length, kHeadDim, spec_.hidden / spec_.heads));
    ASSIGN_OR_RETURN(int64_t value_length,
                     metadata_.IntegerOr(Key("attention.value_length"),
                                         kHeadDim, spec_.head_dim));
    if (value_length != spec_.head_dim) {
      return Error(GgufError::kHeadCount, "attention.value_length",
                   absl::StrCat(value_length),
                   absl::StrCat("the key length ", spec_.head_dim));
    }
    return absl::OkStatus();
  }

  absl::Status ReadRope() {
    RopeSpec& rope = spec_.ropes.emplace_back();
    rope.pairing = family_.pairing;
    ASSIGN_OR_RETURN(rope.base, metadata_.FloatOr(Key("rope.freq_base"),
                                                  kRopeBase, RopeSpec{}.base));
    ASSIGN_OR_RETURN(rope.dimensions,
                     metadata_.IntegerOr(Key("rope.dimension_count"), kHeadDim,
                                         spec_.head_dim));
    if (rope.dimensions > spec_.head_dim || rope.dimensions % 2 != 0) {
      return Error(
          GgufError::kRopeDimensions, "rope.dimension_count",
          absl::StrCat(rope.dimensions),
          absl::StrCat("an even number up to the head's ", spec_.head_dim));
    }
    ASSIGN_OR_RETURN(absl::string_view scaling,
                     metadata_.StringOr(Key("rope.scaling.type"), "none"));
    if (scaling != "none") {
      return Error(GgufError::kRopeScaling, "rope.scaling.type",
                   QuoteForError(scaling), "\"none\"");
    }
    // The key of older files, which have no type.
    ASSIGN_OR_RETURN(double linear, metadata_.FloatOr(Key("rope.scale_linear"),
                                                      {-1e30, 1e30}, 1.0));
    if (linear != 1.0) {
      return Error(GgufError::kRopeScaling, "rope.scale_linear",
                   absl::StrCat(linear), "1");
    }
    return absl::OkStatus();
  }

  const GgufReader& reader_;
  const GgufMetadata& metadata_;
  const std::string prefix_;
  const Family& family_;
  ModelSpec spec_;
};

}  // namespace

absl::StatusOr<ModelSpec> ReadGgufSpec(const GgufReader& reader) {
  constexpr absl::string_view kKey = "general.architecture";
  ASSIGN_OR_RETURN(absl::string_view name, reader.metadata().String(kKey));
  auto family =
      std::find_if(std::begin(kFamilies), std::end(kFamilies),
                   [&](const Family& f) { return f.architecture == name; });
  if (family == std::end(kFamilies)) {
    std::string known;
    for (const Family& f : kFamilies) {
      absl::StrAppend(&known, known.empty() ? "" : ", ",
                      QuoteForError(f.architecture));
    }
    return reader.errors().Make(GgufError::kArchitecture,
                                {.field = std::string(kKey),
                                 .found = QuoteForError(name),
                                 .expected = known});
  }
  return SpecReader(reader, *family).Read();
}

}  // namespace penstock
