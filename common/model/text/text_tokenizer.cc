#include "common/model/text/text_tokenizer.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/byte_token.h"
#include "common/model/text/byte_alphabet.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

// Bounds how often a byte of text can be looked at for special tokens.
constexpr size_t kMaxSpecialBytes = 512;

bool IsControl(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

// Adjacent runs of one mode as one range of the joined text.
struct Region {
  size_t begin;
  size_t end;
  SpecialTokens special;
};

struct JoinedText {
  std::string text;
  std::vector<Region> regions;
};

absl::StatusOr<JoinedText> Join(absl::Span<const TextRun> runs) {
  JoinedText joined;
  for (const TextRun& run : runs) {
    if (run.text.size() > kMaxTextBytes - joined.text.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("text is longer than ", kMaxTextBytes, " bytes"));
    }
    const size_t begin = joined.text.size();
    joined.text.append(run.text.data(), run.text.size());
    const size_t end = joined.text.size();
    if (!joined.regions.empty() &&
        joined.regions.back().special == run.special) {
      joined.regions.back().end = end;
    } else {
      joined.regions.push_back({begin, end, run.special});
    }
  }
  RETURN_IF_ERROR(CheckUtf8("text", joined.text));
  return joined;
}

// What a token adds to text.
std::string BytesOf(const Vocabulary& vocabulary, const ByteAlphabet& alphabet,
                    size_t id) {
  const std::string& text = vocabulary.tokens[id];
  switch (vocabulary.kinds[id]) {
    case TokenKind::kByte: {
      const int byte = ByteOfToken(text);
      return byte < 0 ? text : std::string(1, static_cast<char>(byte));
    }
    case TokenKind::kNormal:
    case TokenKind::kUnused:
      break;
    case TokenKind::kUserDefined:
      // Gemma adds runs of spaces as tokens of their own.
      if (vocabulary.model != "gpt2" && vocabulary.escaped_spaces) break;
      return text;
    default:
      return text;
  }
  if (vocabulary.model == "gpt2") {
    // Text outside the alphabet can only mean itself.
    return alphabet.Decode(text).value_or(text);
  }
  if (!vocabulary.escaped_spaces) return text;
  return absl::StrReplaceAll(text, {{"\u2581", " "}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextTokenizer>> TextTokenizer::Create(
    const Vocabulary& vocabulary, absl::Span<const NormalizerStep> normalizers,
    absl::Span<const PreTokenizerStep> pre_tokenizers,
    std::unique_ptr<TokenModel> model) {
  ASSIGN_OR_RETURN(TextNormalizer normalizer,
                   TextNormalizer::Create(normalizers));
  ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                   PreTokenizer::Create(pre_tokenizers));
  auto tokenizer = absl::WrapUnique(new TextTokenizer(
      std::move(normalizer), std::move(pre_tokenizer), std::move(model)));
  RETURN_IF_ERROR(tokenizer->AddTokens(vocabulary));
  tokenizer->stop_tokens_ = vocabulary.stop_tokens;
  tokenizer->bos_ = vocabulary.bos;
  tokenizer->eos_ = vocabulary.eos;
  tokenizer->add_bos_ = vocabulary.add_bos;
  tokenizer->add_eos_ = vocabulary.add_eos;
  tokenizer->strip_first_space_ = vocabulary.strip_first_space;
  return tokenizer;
}

absl::Status TextTokenizer::AddTokens(const Vocabulary& vocabulary) {
  absl::flat_hash_map<TokenId, TokenMatching> by_id;
  for (const TokenMatching& matching : vocabulary.matchings) {
    by_id.emplace(matching.id, matching);
  }
  const ByteAlphabet alphabet;
  tokens_.reserve(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    const TokenKind kind = vocabulary.kinds[i];
    tokens_.push_back({BytesOf(vocabulary, alphabet, i), IsControl(kind)});
    if (!IsControl(kind) && kind != TokenKind::kUserDefined) continue;
    if (text.empty()) continue;
    if (text.size() > kMaxSpecialBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer.ggml.tokens[", i, "]: a special token of ",
                       text.size(), " bytes, more than ", kMaxSpecialBytes));
    }
    const auto id = static_cast<TokenId>(i);
    const auto matching = by_id.find(id);
    RETURN_IF_ERROR(Seek(
        text, matching == by_id.end() ? TokenMatching{id} : matching->second,
        IsControl(kind)));
  }
  return absl::OkStatus();
}

absl::Status TextTokenizer::Seek(const std::string& text,
                                 const TokenMatching& matching, bool special) {
  if (!matching.normalized) {
    added_.Add(text, matching, special);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string normalized, normalizer_.Apply(text));
  if (!normalized.empty()) {
    normalized_added_.Add(normalized, matching, special);
  }
  return absl::OkStatus();
}

class TextTokenizer::Encoding {
 public:
  Encoding(const TextTokenizer& owner, const JoinedText& joined)
      : owner_(owner),
        text_(joined.text),
        regions_(joined.regions),
        splitter_(owner.pre_tokenizer_),
        model_(owner.model_->NewSession(joined.text.size())) {}

  absl::StatusOr<std::vector<TokenId>> Run() {
    // Most text comes to a token for every few bytes.
    ids_.reserve(text_.size() / 4);
    size_t taken = 0;  // text before this has its ids
    for (const Region& region : regions_) {
      const bool special = region.special == SpecialTokens::kParse;
      while (const auto match =
                 owner_.added_.Find(text_, taken, std::max(taken, region.begin),
                                    std::max(taken, region.end), special)) {
        RETURN_IF_ERROR(AddText(taken, match->begin));
        ids_.push_back(match->id);
        taken = match->end;
      }
    }
    RETURN_IF_ERROR(AddText(taken, text_.size()));
    return std::move(ids_);
  }

 private:
  // Text without tokens that are sought as it comes.
  absl::Status AddText(size_t begin, size_t end) {
    if (begin == end) return absl::OkStatus();
    const absl::string_view text = text_.substr(begin, end - begin);
    if (owner_.normalizer_.empty()) {
      if (owner_.normalized_added_.empty()) return AddWords(text, begin == 0);
      return AddNormalized(text, begin, begin == 0);
    }
    ASSIGN_OR_RETURN(const std::string normalized,
                     owner_.normalizer_.Apply(text));
    if (owner_.normalized_added_.empty()) {
      return AddWords(normalized, begin == 0);
    }
    if (normalized == text) return AddNormalized(normalized, begin, begin == 0);
    // Which part of the text came from where is lost: special tokens count only
    // when they do everywhere in it.
    bool special = true;
    for (const Region& region : regions_) {
      if (region.end <= begin || region.begin >= end) continue;
      special = special && region.special == SpecialTokens::kParse;
    }
    size_t taken = 0;
    RETURN_IF_ERROR(
        Seek(normalized, normalized.size(), special, begin == 0, taken));
    return AddWords(absl::string_view(normalized).substr(taken),
                    begin == 0 && taken == 0);
  }

  // Text that normalising left as it was, from `begin` of all text.
  absl::Status AddNormalized(absl::string_view text, size_t begin,
                             bool at_start) {
    size_t taken = 0;
    for (const Region& region : regions_) {
      if (region.end <= begin) continue;
      const size_t end = std::min(region.end - begin, text.size());
      RETURN_IF_ERROR(Seek(text, end, region.special == SpecialTokens::kParse,
                           at_start, taken));
      if (end == text.size()) break;
    }
    return AddWords(text.substr(taken), at_start && taken == 0);
  }

  // Tokens that are sought in normalised text, and the text before each.
  absl::Status Seek(absl::string_view text, size_t end, bool special,
                    bool at_start, size_t& taken) {
    while (const auto match = owner_.normalized_added_.Find(
               text, taken, taken, std::max(taken, end), special)) {
      RETURN_IF_ERROR(AddWords(text.substr(taken, match->begin - taken),
                               at_start && taken == 0));
      ids_.push_back(match->id);
      taken = match->end;
    }
    return absl::OkStatus();
  }

  absl::Status AddWords(absl::string_view text, bool at_start) {
    RETURN_IF_ERROR(splitter_.Split(text, at_start));
    for (const TextRange piece : splitter_.pieces()) {
      model_->Encode(
          splitter_.text().substr(piece.begin, piece.end - piece.begin), ids_);
    }
    return absl::OkStatus();
  }

  const TextTokenizer& owner_;
  const absl::string_view text_;
  const std::vector<Region>& regions_;
  PreTokenizer::Session splitter_;
  std::unique_ptr<TokenModel::Session> model_;
  std::vector<TokenId> ids_;
};

absl::StatusOr<std::vector<TokenId>> TextTokenizer::EncodeRuns(
    absl::Span<const TextRun> runs) const {
  ASSIGN_OR_RETURN(const JoinedText joined, Join(runs));
  return Encoding(*this, joined).Run();
}

absl::string_view TextTokenizer::TokenBytes(TokenId id) const {
  CHECK(id >= 0 && id < vocab_size()) << "no token " << id;
  return tokens_[id].bytes;
}

bool TextTokenizer::IsSpecial(TokenId id) const {
  CHECK(id >= 0 && id < vocab_size()) << "no token " << id;
  return tokens_[id].special;
}

}  // namespace penstock
