#include "common/model/files/tokenizer_json/steps_reader.h"

#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/model/byte_level_pattern.h"

namespace penstock {
namespace {

using Behavior = PreTokenizerStep::Behavior;
using Prepend = PreTokenizerStep::Prepend;

constexpr absl::string_view kSpaceMark = "\u2581";
// Each step is a pass over every text.
constexpr size_t kMaxSteps = 64;

// Calls `read` on each element of member `key` of a Sequence.
template <typename Read>
absl::Status ReadSequence(const JsonValue& value, const char* key,
                          const Read& read) {
  const JsonValue parts = value.Member(key);
  RETURN_IF_ERROR(parts.CheckArray());
  for (size_t i = 0; i < parts.size(); ++i) {
    RETURN_IF_ERROR(read(parts.Element(i)));
  }
  return absl::OkStatus();
}

struct Pattern {
  std::string text;
  bool regex = false;
};

absl::StatusOr<Pattern> ReadPattern(const JsonValue& value) {
  RETURN_IF_ERROR(value.CheckObject());
  const bool regex = !value.Member("Regex").absent();
  const JsonValue text = value.Member(regex ? "Regex" : "String");
  ASSIGN_OR_RETURN(std::string pattern, text.String());
  if (pattern.empty()) return text.Error("is an empty pattern");
  return Pattern{std::move(pattern), regex};
}

absl::Status AddNormalizer(const JsonValue& value, absl::string_view type,
                           NormalizerStep& step) {
  using Kind = NormalizerStep::Kind;
  static constexpr struct {
    absl::string_view type;
    Kind kind;
  } kPlain[] = {{"NFC", Kind::kNfc},
                {"NFD", Kind::kNfd},
                {"NFKC", Kind::kNfkc},
                {"NFKD", Kind::kNfkd},
                {"Lowercase", Kind::kLowercase}};
  for (const auto& plain : kPlain) {
    if (plain.type != type) continue;
    step.kind = plain.kind;
    return absl::OkStatus();
  }
  if (type == "Strip") {
    step.kind = Kind::kStrip;
    ASSIGN_OR_RETURN(step.left, value.Member("strip_left").BoolOr(true));
    ASSIGN_OR_RETURN(step.right, value.Member("strip_right").BoolOr(true));
    return absl::OkStatus();
  }
  if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    ASSIGN_OR_RETURN(step.text, value.Member("prepend").String());
    return absl::OkStatus();
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(value.Member("pattern")));
    step.kind = pattern.regex ? Kind::kReplaceRegex : Kind::kReplace;
    step.pattern = std::move(pattern.text);
    ASSIGN_OR_RETURN(step.text, value.Member("content").String());
    return absl::OkStatus();
  }
  return value.Unknown("normalizer", type);
}

absl::Status ReadBehavior(const JsonValue& value, Behavior& behavior) {
  static constexpr struct {
    absl::string_view name;
    Behavior behavior;
  } kBehaviors[] = {{"Isolated", Behavior::kIsolated},
                    {"Removed", Behavior::kRemoved},
                    {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                    {"MergedWithNext", Behavior::kMergedWithNext},
                    {"Contiguous", Behavior::kContiguous}};
  ASSIGN_OR_RETURN(const std::string name, value.String());
  for (const auto& known : kBehaviors) {
    if (known.name != name) continue;
    behavior = known.behavior;
    return absl::OkStatus();
  }
  return value.Unknown("behavior", name);
}

absl::Status ReadMetaspace(const JsonValue& value, PreTokenizerStep& step) {
  step.kind = PreTokenizerStep::Kind::kMetaspace;
  ASSIGN_OR_RETURN(step.pattern, value.Member("replacement").String());
  if (step.pattern.empty() || step.pattern.size() > kSpaceMark.size()) {
    return value.Member("replacement").Error("is not one character");
  }
  ASSIGN_OR_RETURN(step.split, value.Member("split").BoolOr(true));
  // Files of old say only whether.
  ASSIGN_OR_RETURN(const bool prefix,
                   value.Member("add_prefix_space").BoolOr(true));
  step.prepend = prefix ? Prepend::kAlways : Prepend::kNever;
  const JsonValue scheme = value.Member("prepend_scheme");
  if (scheme.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string name, scheme.String());
  if (name == "always") {
    step.prepend = Prepend::kAlways;
  } else if (name == "first") {
    step.prepend = Prepend::kFirst;
  } else if (name == "never") {
    step.prepend = Prepend::kNever;
  } else {
    return scheme.Unknown("prepend scheme", name);
  }
  return absl::OkStatus();
}

// Pre-tokenizers that are a pattern by another name.
absl::Status ReadNamedPattern(const JsonValue& value, absl::string_view type,
                              PreTokenizerStep& step) {
  if (type == "Digits") {
    step.pattern = R"(\p{N})";
    ASSIGN_OR_RETURN(const bool each,
                     value.Member("individual_digits").BoolOr(false));
    step.behavior = each ? Behavior::kIsolated : Behavior::kContiguous;
  } else if (type == "Punctuation") {
    step.pattern = R"([\p{P}$+<=>^`|~])";
    if (!value.Member("behavior").absent()) {
      return ReadBehavior(value.Member("behavior"), step.behavior);
    }
  } else if (type == "Whitespace") {
    step.pattern = R"(\w+|[^\w\s]+)";
    step.behavior = Behavior::kRemoved;
    step.invert = true;
  } else if (type == "WhitespaceSplit") {
    step.pattern = R"(\s)";
    step.behavior = Behavior::kRemoved;
  } else {
    return value.Unknown("pre-tokenizer", type);
  }
  return absl::OkStatus();
}

absl::Status ReadSplit(const JsonValue& value, PreTokenizerStep& step) {
  ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(value.Member("pattern")));
  step.kind = pattern.regex ? PreTokenizerStep::Kind::kRegex
                            : PreTokenizerStep::Kind::kLiteral;
  step.pattern = std::move(pattern.text);
  ASSIGN_OR_RETURN(step.invert, value.Member("invert").BoolOr(false));
  return ReadBehavior(value.Member("behavior"), step.behavior);
}

absl::Status ReadByteLevel(const JsonValue& value, Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const bool prefix,
                   value.Member("add_prefix_space").BoolOr(true));
  ASSIGN_OR_RETURN(const bool regex, value.Member("use_regex").BoolOr(true));
  if (prefix) {
    PreTokenizerStep step;
    step.kind = PreTokenizerStep::Kind::kPrefixSpace;
    vocabulary.pre_tokenizers.push_back(std::move(step));
  }
  if (regex) {
    PreTokenizerStep step;
    step.pattern = std::string(kByteLevelPattern);
    vocabulary.pre_tokenizers.push_back(std::move(step));
  }
  return absl::OkStatus();
}

absl::Status ReadDecoderReplace(const JsonValue& value,
                                Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const Pattern pattern, ReadPattern(value.Member("pattern")));
  ASSIGN_OR_RETURN(const std::string content, value.Member("content").String());
  if (pattern.regex || pattern.text != kSpaceMark || content != " ") {
    return value.Unknown("replacement of", pattern.text);
  }
  vocabulary.escaped_spaces = true;
  return absl::OkStatus();
}

absl::Status ReadDecoderStrip(const JsonValue& value, Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const std::string content, value.Member("content").String());
  ASSIGN_OR_RETURN(const int64_t start, value.Member("start").Integer());
  ASSIGN_OR_RETURN(const int64_t stop, value.Member("stop").Integer());
  if (content != " " || start < 0 || start > 1 || stop != 0) {
    return value.Unknown("stripping of", content);
  }
  if (start == 1) vocabulary.strip_first_space = true;
  return absl::OkStatus();
}

// One side of a template: at most one token.
absl::Status AddSpecial(const JsonValue& piece, const JsonValue& special,
                        TokenId& id) {
  if (id != -1) {
    return piece.Unknown("template of more than one token on a side", "");
  }
  ASSIGN_OR_RETURN(const std::string name,
                   piece.Member("SpecialToken").Member("id").String());
  const JsonValue ids = special.Member(name.c_str()).Member("ids");
  RETURN_IF_ERROR(ids.CheckArray());
  if (ids.size() != 1) return ids.Error("is not one token");
  ASSIGN_OR_RETURN(const int64_t number, ids.Element(0).Integer());
  if (number < 0 || number > std::numeric_limits<TokenId>::max()) {
    return ids.Error("is no id");
  }
  id = static_cast<TokenId>(number);
  return absl::OkStatus();
}

absl::Status ReadTemplate(const JsonValue& value, TextFrame& frame) {
  const JsonValue single = value.Member("single");
  RETURN_IF_ERROR(single.CheckArray());
  bool after = false;
  for (size_t i = 0; i < single.size(); ++i) {
    const JsonValue piece = single.Element(i);
    if (!piece.Member("Sequence").absent()) {
      if (after) return piece.Error("is a second text");
      after = true;
      continue;
    }
    RETURN_IF_ERROR(AddSpecial(piece, value.Member("special_tokens"),
                               after ? frame.after : frame.before));
  }
  return after ? absl::OkStatus() : single.Error("has no place for the text");
}

}  // namespace

absl::Status ReadNormalizer(const JsonValue& value, Vocabulary& vocabulary) {
  if (value.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, value.Member("type").String());
  if (type == "Sequence") {
    return ReadSequence(value, "normalizers", [&](const JsonValue& part) {
      return ReadNormalizer(part, vocabulary);
    });
  }
  NormalizerStep step;
  RETURN_IF_ERROR(AddNormalizer(value, type, step));
  if (vocabulary.normalizers.size() == kMaxSteps) {
    return value.Error(absl::StrCat("is more than ", kMaxSteps, " steps"));
  }
  vocabulary.normalizers.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status ReadPreTokenizer(const JsonValue& value, Vocabulary& vocabulary,
                              bool& byte_level) {
  if (value.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, value.Member("type").String());
  if (type == "Sequence") {
    return ReadSequence(value, "pretokenizers", [&](const JsonValue& part) {
      return ReadPreTokenizer(part, vocabulary, byte_level);
    });
  }
  // It leaves an alphabet of its own, in which other patterns mean nothing.
  if (byte_level) return value.Unknown("pre-tokenizer after ByteLevel", type);
  if (type == "ByteLevel") {
    byte_level = true;
    return ReadByteLevel(value, vocabulary);
  }
  PreTokenizerStep step;
  if (type == "Split") {
    RETURN_IF_ERROR(ReadSplit(value, step));
  } else if (type == "Metaspace") {
    RETURN_IF_ERROR(ReadMetaspace(value, step));
  } else {
    RETURN_IF_ERROR(ReadNamedPattern(value, type, step));
  }
  if (vocabulary.pre_tokenizers.size() >= kMaxSteps) {
    return value.Error(absl::StrCat("is more than ", kMaxSteps, " steps"));
  }
  vocabulary.pre_tokenizers.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status ReadDecoder(const JsonValue& value, Vocabulary& vocabulary) {
  if (value.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, value.Member("type").String());
  if (type == "Sequence") {
    return ReadSequence(value, "decoders", [&](const JsonValue& part) {
      return ReadDecoder(part, vocabulary);
    });
  }
  if (type == "Replace") return ReadDecoderReplace(value, vocabulary);
  if (type == "Strip") return ReadDecoderStrip(value, vocabulary);
  if (type == "Metaspace") {
    PreTokenizerStep step;
    RETURN_IF_ERROR(ReadMetaspace(value, step));
    if (step.pattern != kSpaceMark) {
      return value.Unknown("replacement of", step.pattern);
    }
    vocabulary.escaped_spaces = true;
    vocabulary.strip_first_space = step.prepend != Prepend::kNever;
    return absl::OkStatus();
  }
  // What these do is in the kinds of tokens already.
  if (type == "ByteLevel" || type == "ByteFallback" || type == "Fuse") {
    return absl::OkStatus();
  }
  return value.Unknown("decoder", type);
}

absl::Status ReadPostProcessor(const JsonValue& value, TextFrame& frame) {
  if (value.absent()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string type, value.Member("type").String());
  if (type == "Sequence") {
    return ReadSequence(value, "processors", [&](const JsonValue& part) {
      return ReadPostProcessor(part, frame);
    });
  }
  // About offsets only.
  if (type == "ByteLevel") return absl::OkStatus();
  if (type == "TemplateProcessing") return ReadTemplate(value, frame);
  return value.Unknown("post-processor", type);
}

}  // namespace penstock
