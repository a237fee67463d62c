// Feeds seeded broken tokenizer.json files to their reader, and what it makes
// of them to the tokenizers.
//   tokenizer_json_mutation --seed 1 --inputs 1000000 --min-hits 100
// A broken promise aborts. Exits 1 when an outcome came up fewer times than
// asked: then the run did not test it.

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/testing/edit_text.h"
#include "common/env/testing/mutation_report.h"
#include "common/model/files/tokenizer_json/tokenizer_json.h"
#include "common/model/text/tokenizer.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr int64_t kRows = 24;

// Between them, these use every part that the reader knows.
constexpr const char* kFiles[] = {
    R"json({"added_tokens": [{"id": 9, "content": "<s>", "special": true,
          "normalized": false}, {"id": 10, "content": "cc", "lstrip": true,
          "rstrip": true, "single_word": true, "normalized": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"},
          {"type": "Lowercase"}, {"type": "Strip", "strip_left": true}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
          {"type": "Split", "pattern": {"Regex": "a+|b+(?!c)"},
           "behavior": "Isolated", "invert": false},
          {"type": "Digits", "individual_digits": true},
          {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}]},
        "post_processor": {"type": "TemplateProcessing", "single": [
          {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
          "special_tokens": {"<s>": {"id": "<s>", "ids": [9]}}},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "ignore_merges": false, "vocab": {"a": 0,
          "b": 1, "c": 2, "ab": 3, "abc": 4, "Ġ": 5, "Ġa": 6, "1": 7,
          "é": 8}, "merges": ["a b", "ab c", ["Ġ", "a"]]}})json",
    R"json({"normalizer": {"type": "Sequence", "normalizers": [
          {"type": "Prepend", "prepend": "▁"},
          {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
          "prepend_scheme": "first", "split": false},
        "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true,
          "byte_fallback": true, "vocab": {"<unk>": 0, "<0xC3>": 1,
          "<0xA9>": 2, "▁": 3, "a": 4, "▁a": 5, "b": 6, "▁ab": 7},
          "merges": ["▁ a", "▁a b"]}})json",
    R"json({"normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"},
          "content": " "},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
          {"type": "WhitespaceSplit"}, {"type": "Punctuation",
          "behavior": "MergedWithPrevious"}, {"type": "Metaspace",
          "replacement": "▁", "prepend_scheme": "always"}]},
        "decoder": {"type": "Metaspace", "replacement": "▁",
          "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
          "vocab": [["<unk>", 0], ["▁", -1.5], ["a", -2], ["▁ab", -2.5],
                    ["b", -3], ["<0x20>", -9]]}})json",
};

constexpr const char* kTexts[] = {
    "NFKC",       "NFD",       "Strip",
    "Split",      "ByteLevel", "Metaspace",
    "Digits",     "Removed",   "MergedWithNext",
    "Contiguous", "BPE",       "Unigram",
    "WordPiece",  "Sequence",  "ByteFallback",
    "always",     "never",     "a",
    "ab",         "",          " ",
    "▁",          "\xC3\xA9",  "<0x41>",
    "a b",        "b c",       "[a&&b]",
    "(a",         "(a*)*b",    "a|",
    "\\s+$",      "\\K",       "(?=a)",
    "^",          "<s>",
};

class Driver {
 public:
  explicit Driver(uint64_t seed) : random_(seed) {
    for (const char* file : kFiles) files_.push_back(Json::parse(file));
  }

  void Run(uint64_t inputs) {
    for (uint64_t i = 0; i < inputs; ++i) {
      Json file = files_[random_.Below(files_.size())];
      static const Json::json_pointer pattern(
          "/pre_tokenizer/pretokenizers/0/pattern/Regex");
      if (random_.Below(4) == 0 && file.contains(pattern)) {
        file[pattern] = kTexts[random_.Below(std::size(kTexts))];
      }
      for (uint64_t edits = random_.Below(4); edits > 0; --edits) {
        Edit(Pick(file));
      }
      std::string text = file.dump();
      if (random_.Below(4) == 0) {
        EditText({"[", "{", "\"", "\\", ","}, random_, text);
      }
      Exercise(text);
    }
  }

  // The exit status; see MutationReport.
  int Report(uint64_t min_hits) const {
    return report_.Print(
        {"read OK", "read INVALID_ARGUMENT", "read UNIMPLEMENTED", "create OK",
         "create INVALID_ARGUMENT", "create UNIMPLEMENTED", "encode OK"},
        min_hits);
  }

 private:
  // A value somewhere in the tree.
  Json& Pick(Json& value) {
    if (!value.is_structured() || value.empty() || random_.Below(6) == 0) {
      return value;
    }
    auto element = value.begin();
    std::advance(element, random_.Below(value.size()));
    return Pick(*element);
  }

  Json Value() {
    switch (random_.Below(7)) {
      case 0:
        return nullptr;
      case 1:
        return static_cast<int64_t>(random_.Below(30)) - 2;
      case 2:
        return random_.Below(2) == 0;
      case 3:
        return static_cast<int64_t>(random_.Next());
      case 4:
        return -1.5e300;
      case 5:
        return Pick(files_[random_.Below(files_.size())]);
      default:
        return kTexts[random_.Below(std::size(kTexts))];
    }
  }

  void Edit(Json& value) {
    const uint64_t kind = random_.Below(4);
    if (value.is_object() && kind > 0 && !value.empty()) {
      auto member = value.begin();
      std::advance(member, random_.Below(value.size()));
      if (kind == 1) {
        value.erase(member);
      } else {
        value[kTexts[random_.Below(std::size(kTexts))]] = *member;
      }
    } else if (value.is_array() && kind > 0 && !value.empty()) {
      if (kind == 1) {
        value.erase(random_.Below(value.size()));
      } else {
        value.push_back(kind == 2 ? Value()
                                  : Json(value[random_.Below(value.size())]));
      }
    } else {
      value = Value();
    }
  }

  void Exercise(const std::string& text) {
    static constexpr absl::string_view kConfigs[] = {
        "",
        "",
        "",
        R"({"eos_token": null, "chat_template": "x"})",
        R"({"bos_token": "a", "eos_token": {"content": "ab"}})",
        R"({"add_bos_token": true, "chat_template": [{"name": "x"}]})"};
    const auto content = ReadTokenizerJson(
        {text, kConfigs[random_.Below(std::size(kConfigs))], ""}, kRows);
    report_.Count("read", content.status());
    if (!content.ok()) {
      CHECK(absl::StartsWith(content.status().message(), "tokenizer"))
          << content.status().ToString();
      return;
    }
    const Vocabulary& vocabulary = content->vocabulary;
    CHECK(vocabulary.tokens.size() == kRows && vocabulary.kinds.size() == kRows)
        << "a row without a token";
    const auto tokenizer = CreateTokenizer(vocabulary);
    report_.Count("create", tokenizer.status());
    if (!tokenizer.ok()) return;
    for (const SpecialTokens special :
         {SpecialTokens::kParse, SpecialTokens::kPlain}) {
      const auto ids =
          (*tokenizer)->Encode(" abc  cc<s> \xC3\xA9! 12aaab\n", special);
      report_.Count("encode", ids.status());
      // Patterns may ask for more than is allowed.
      if (!ids.ok()) continue;
      CHECK(DecodeBytes(**tokenizer, *ids, true).ok()) << "ids of no token";
    }
  }

  SeededRandom random_;
  std::vector<Json> files_;
  MutationReport report_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::Driver driver(options->seed);
  driver.Run(options->inputs);
  return driver.Report(options->min_hits);
}
