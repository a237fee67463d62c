#include "common/model/text/bpe_tokenizer.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/text/byte_alphabet.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

// Bounds how often a byte of text can be looked at for special tokens.
constexpr size_t kMaxSpecialBytes = 512;

bool IsControl(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

absl::StatusOr<BpeMerger::TokenIds> IndexTokens(const Vocabulary& vocabulary) {
  BpeMerger::TokenIds ids;
  ids.reserve(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    // Padding of the vocabulary may repeat itself.
    if (vocabulary.kinds[i] == TokenKind::kUnused) continue;
    const auto [entry, added] =
        ids.try_emplace(vocabulary.tokens[i], static_cast<TokenId>(i));
    if (!added) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer.ggml.tokens[", i, "] '", vocabulary.tokens[i],
                       "' is token ", entry->second, " already"));
    }
  }
  return ids;
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

}  // namespace

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Create(
    const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                   PreTokenizer::Create(vocabulary.pre_tokenizer));
  ASSIGN_OR_RETURN(const BpeMerger::TokenIds ids, IndexTokens(vocabulary));
  ASSIGN_OR_RETURN(BpeMerger merger, BpeMerger::Create(vocabulary.merges, ids));
  auto tokenizer = absl::WrapUnique(
      new BpeTokenizer(std::move(pre_tokenizer), std::move(merger)));

  const ByteAlphabet alphabet;
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = ids.find(alphabet.Character(static_cast<uint8_t>(byte)));
    tokenizer->byte_ids_[byte] = id == ids.end() ? -1 : id->second;
  }
  tokenizer->tokens_.reserve(vocabulary.tokens.size());
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    const TokenKind kind = vocabulary.kinds[i];
    const bool literal = IsControl(kind) || kind == TokenKind::kUserDefined;
    // Text outside the alphabet can only mean itself.
    absl::optional<std::string> bytes;
    if (!literal) bytes = alphabet.Decode(text);
    tokenizer->tokens_.push_back({bytes.value_or(text), IsControl(kind)});
    if (!literal || text.empty()) continue;
    if (text.size() > kMaxSpecialBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer.ggml.tokens[", i, "]: a special token of ",
                       text.size(), " bytes, more than ", kMaxSpecialBytes));
    }
    const auto id = static_cast<TokenId>(i);
    tokenizer->special_.Add(text, id);
    if (!IsControl(kind)) tokenizer->user_defined_.Add(text, id);
  }
  tokenizer->stop_tokens_ = vocabulary.stop_tokens;
  tokenizer->bos_ = vocabulary.bos;
  tokenizer->eos_ = vocabulary.eos;
  tokenizer->add_bos_ = vocabulary.add_bos;
  return tokenizer;
}

class BpeTokenizer::Encoding {
 public:
  explicit Encoding(const BpeTokenizer& owner)
      : owner_(owner),
        splitter_(owner.pre_tokenizer_),
        merger_(owner.merger_) {}

  void AddSpecial(TokenId id) { ids_.push_back(id); }

  // Text in which no special token is sought.
  absl::Status AddWords(absl::string_view text) {
    ASSIGN_OR_RETURN(const std::vector<absl::string_view> pieces,
                     splitter_.Split(text));
    for (const absl::string_view piece : pieces) {
      symbols_.clear();
      for (const char byte : piece) {
        const TokenId id = owner_.byte_ids_[static_cast<uint8_t>(byte)];
        if (id >= 0) symbols_.push_back(id);
      }
      merger_.Merge(symbols_);
      ids_.insert(ids_.end(), symbols_.begin(), symbols_.end());
    }
    return absl::OkStatus();
  }

  std::vector<TokenId> TakeIds() { return std::move(ids_); }

 private:
  const BpeTokenizer& owner_;
  PreTokenizer::Session splitter_;
  BpeMerger::Session merger_;
  std::vector<TokenId> symbols_;
  std::vector<TokenId> ids_;
};

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::EncodeRuns(
    absl::Span<const TextRun> runs) const {
  ASSIGN_OR_RETURN(const JoinedText joined, Join(runs));
  const absl::string_view text = joined.text;
  Encoding encoding(*this);
  size_t encoded = 0;  // text before this has its ids
  for (const Region& region : joined.regions) {
    const TextTrie& trie =
        region.special == SpecialTokens::kParse ? special_ : user_defined_;
    size_t at = region.begin;
    while (const auto match = trie.Find(text.substr(0, region.end), at)) {
      RETURN_IF_ERROR(
          encoding.AddWords(text.substr(encoded, match->begin - encoded)));
      encoding.AddSpecial(match->id);
      at = encoded = match->begin + match->length;
    }
  }
  RETURN_IF_ERROR(encoding.AddWords(text.substr(encoded)));
  return encoding.TakeIds();
}

absl::string_view BpeTokenizer::TokenBytes(TokenId id) const {
  CHECK(id >= 0 && id < vocab_size()) << "no token " << id;
  return tokens_[id].bytes;
}

bool BpeTokenizer::IsSpecial(TokenId id) const {
  CHECK(id >= 0 && id < vocab_size()) << "no token " << id;
  return tokens_[id].special;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> CreateBpeTokenizer(
    const Vocabulary& vocabulary) {
  return BpeTokenizer::Create(vocabulary);
}

}  // namespace penstock
