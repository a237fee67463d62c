#include "common/model/text/pre_tokenizer.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// White space is spelt out as Unicode's White_Space property: PCRE2's \s would
// count U+180E too, which the models' own tokenizers do not.
#define PENSTOCK_SPACE R"(\t-\r\x{85}\p{Z})"

constexpr char kGpt2Words[] = R"('(?:[sdmt]|ll|ve|re))"
                              R"(| ?\p{L}+)"
                              R"(| ?\p{N}+)"
                              R"(| ?[^\p{L}\p{N})" PENSTOCK_SPACE R"(]+)"
                              "|[" PENSTOCK_SPACE "]+(?![^" PENSTOCK_SPACE
                              "])"
                              "|[" PENSTOCK_SPACE "]+";
constexpr char kEachNumeral[] = R"(\p{N})";

#undef PENSTOCK_SPACE

struct Row {
  absl::string_view name;
  std::vector<absl::string_view> patterns;
};

const std::vector<Row>& Table() {
  static const auto* const table = new std::vector<Row>{
      {"default", {kGpt2Words}},
      {"gpt-2", {kGpt2Words}},
      {"smollm", {kEachNumeral, kGpt2Words}},
  };
  return *table;
}

// Appends the pieces of `text` under one pattern.
absl::Status SplitPiece(absl::string_view text, Regex::Matcher& matcher,
                        std::vector<absl::string_view>& pieces) {
  size_t at = 0;
  while (at < text.size()) {
    ASSIGN_OR_RETURN(const absl::optional<Regex::Match> match,
                     matcher.Find(text, at));
    if (!match.has_value()) break;
    CHECK(match->end > match->begin) << "a pre-tokenizer pattern matched ''";
    if (match->begin > at) pieces.push_back(text.substr(at, match->begin - at));
    pieces.push_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
  if (at < text.size()) pieces.push_back(text.substr(at));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::Create(absl::string_view name) {
  std::string known;
  for (const Row& row : Table()) {
    if (row.name == name) {
      std::vector<std::unique_ptr<Regex>> stages;
      for (const absl::string_view pattern : row.patterns) {
        ASSIGN_OR_RETURN(stages.emplace_back(), Regex::Compile(pattern));
      }
      return PreTokenizer(std::move(stages));
    }
    absl::StrAppend(&known, known.empty() ? "" : ", ", row.name);
  }
  return absl::UnimplementedError(
      absl::StrCat("tokenizer.ggml.pre: pre-tokenizer '", name,
                   "' is not known to this build (known: ", known, ")"));
}

PreTokenizer::Session::Session(const PreTokenizer& owner) {
  for (const std::unique_ptr<Regex>& stage : owner.stages_) {
    stages_.push_back(std::make_unique<Regex::Matcher>(*stage));
  }
}

absl::StatusOr<std::vector<absl::string_view>> PreTokenizer::Session::Split(
    absl::string_view text) {
  std::vector<absl::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const std::unique_ptr<Regex::Matcher>& stage : stages_) {
    std::vector<absl::string_view> cut;
    cut.reserve(pieces.size());
    for (const absl::string_view piece : pieces) {
      RETURN_IF_ERROR(SplitPiece(piece, *stage, cut));
    }
    pieces = std::move(cut);
  }
  return pieces;
}

}  // namespace penstock
