#include "common/model/text/bpe_model.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/byte_token.h"
#include "common/model/text/byte_alphabet.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

constexpr absl::string_view kSpaceMark = "\u2581";
// Bounds how many ways there are to cut a token in two.
constexpr size_t kMaxScoredBytes = 512;

// Whether text may become the token by merges.
bool IsWord(TokenKind kind) {
  return kind == TokenKind::kNormal || kind == TokenKind::kUserDefined;
}

absl::StatusOr<absl::flat_hash_map<absl::string_view, TokenId>> IndexTokens(
    const Vocabulary& vocabulary) {
  absl::flat_hash_map<absl::string_view, TokenId> ids;
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

std::vector<BpeMerger::Rule> RulesOfMerges(const Vocabulary& vocabulary) {
  std::vector<BpeMerger::Rule> rules;
  rules.reserve(vocabulary.merges.size());
  for (size_t i = 0; i < vocabulary.merges.size(); ++i) {
    const TokenMerge& merge = vocabulary.merges[i];
    rules.push_back(
        {merge.left, merge.right, merge.result, static_cast<int32_t>(i)});
  }
  return rules;
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& vocabulary)
    : bytes_(vocabulary.model == "gpt2"),
      by_scores_(vocabulary.model == "llama"),
      vocab_size_(static_cast<TokenId>(vocabulary.tokens.size())),
      ignore_merges_(vocabulary.ignore_merges),
      unknown_(vocabulary.use_unknown ? vocabulary.unknown : -1),
      fuse_unknown_(vocabulary.fuse_unknown),
      byte_fallback_(vocabulary.byte_fallback) {
  byte_tokens_ = FindByteTokens(vocabulary);
  byte_ids_.fill(-1);
  ascii_.fill(-1);
}

absl::StatusOr<std::unique_ptr<BpeModel>> BpeModel::Create(
    const Vocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const TokenIds ids, IndexTokens(vocabulary));
  auto model = absl::WrapUnique(new BpeModel(vocabulary));
  model->IndexSymbols(vocabulary, ids);
  std::vector<BpeMerger::Rule> rules;
  if (model->by_scores_) {
    for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      if (!IsWord(vocabulary.kinds[i])) continue;
      if (vocabulary.tokens[i].size() <= kMaxScoredBytes) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "tokenizer.ggml.tokens[", i, "]: ", vocabulary.tokens[i].size(),
          " bytes, more than ", kMaxScoredBytes));
    }
    rules = model->RulesOfScores(vocabulary, ids);
  } else {
    rules = RulesOfMerges(vocabulary);
  }
  model->merger_ = std::make_unique<BpeMerger>(rules);
  model->FindWhetherSpacesCut(vocabulary);
  model->IndexWords(vocabulary);
  return model;
}

void BpeModel::IndexSymbols(const Vocabulary& vocabulary, const TokenIds& ids) {
  if (bytes_) {
    const ByteAlphabet alphabet;
    for (int byte = 0; byte < 256; ++byte) {
      const auto id = ids.find(alphabet.Character(static_cast<uint8_t>(byte)));
      if (id != ids.end()) byte_ids_[byte] = id->second;
    }
    return;
  }
  for (TokenId id = 0; id < vocab_size_; ++id) {
    const std::string& text = vocabulary.tokens[id];
    if (vocabulary.kinds[id] == TokenKind::kUnused) continue;
    if (text.empty() || !IsUtf8(text)) continue;
    if (static_cast<size_t>(Utf8Length(text, 0)) != text.size()) continue;
    const char32_t character = DecodeUtf8(text);
    if (character < 128) {
      ascii_[character] = id;
    } else {
      characters_.emplace(character, id);
    }
  }
}

TokenId BpeModel::PartId(absl::string_view part, const TokenIds& ids) const {
  const auto id = ids.find(part);
  if (id != ids.end()) return id->second;
  const bool single = static_cast<size_t>(Utf8Length(part, 0)) == part.size();
  return single ? Stranger(DecodeUtf8(part)) : -1;
}

// Every way to make a token of two: what makes a better token goes first.
std::vector<BpeMerger::Rule> BpeModel::RulesOfScores(
    const Vocabulary& vocabulary, const TokenIds& ids) const {
  std::vector<double> order;
  for (TokenId id = 0; id < vocab_size_; ++id) {
    if (IsWord(vocabulary.kinds[id])) order.push_back(vocabulary.scores[id]);
  }
  std::sort(order.begin(), order.end(), std::greater<>());
  std::vector<BpeMerger::Rule> rules;
  for (TokenId id = 0; id < vocab_size_; ++id) {
    const absl::string_view text = vocabulary.tokens[id];
    if (!IsWord(vocabulary.kinds[id]) || text.empty() || !IsUtf8(text)) {
      continue;
    }
    const auto rank = static_cast<int32_t>(
        std::lower_bound(order.begin(), order.end(), vocabulary.scores[id],
                         std::greater<>()) -
        order.begin());
    for (size_t at = Utf8Length(text, 0); at < text.size();
         at += Utf8Length(text, at)) {
      const TokenId left = PartId(text.substr(0, at), ids);
      if (left < 0) continue;
      const TokenId right = PartId(text.substr(at), ids);
      if (right >= 0) rules.push_back({left, right, id, rank});
    }
  }
  return rules;
}

// Whether words can be told apart by the spaces in front of them: so in most
// vocabularies of SentencePiece, which never learn to merge across.
void BpeModel::FindWhetherSpacesCut(const Vocabulary& vocabulary) {
  if (bytes_) return;
  spaces_cut_ = characters_.contains(DecodeUtf8(kSpaceMark));
  for (TokenId id = 0; id < vocab_size_ && spaces_cut_; ++id) {
    if (vocabulary.kinds[id] != TokenKind::kNormal &&
        vocabulary.kinds[id] != TokenKind::kUserDefined) {
      continue;
    }
    const absl::string_view text = vocabulary.tokens[id];
    for (size_t at = text.find(kSpaceMark, 1); at != absl::string_view::npos;
         at = text.find(kSpaceMark, at + 1)) {
      if (!absl::EndsWith(text.substr(0, at), kSpaceMark)) spaces_cut_ = false;
    }
  }
}

class BpeModel::Session : public TokenModel::Session {
 public:
  Session(const BpeModel& owner, size_t text_bytes)
      : owner_(owner), merger_(*owner.merger_), cache_(text_bytes) {}

  void Encode(absl::string_view piece, std::vector<TokenId>& ids) override {
    if (!owner_.spaces_cut_ || owner_.ignore_merges_) {
      return EncodeWord(piece, ids);
    }
    for (size_t begin = 0; begin < piece.size();) {
      size_t end = begin;
      while (absl::StartsWith(piece.substr(end), kSpaceMark)) {
        end += kSpaceMark.size();
      }
      // The next mark that follows something else.
      end = std::min(piece.find(kSpaceMark, end), piece.size());
      EncodeWord(piece.substr(begin, end - begin), ids);
      begin = end;
    }
  }

  // What merges alone make of a word.
  void Merge(absl::string_view word) {
    symbols_.clear();
    if (owner_.bytes_) {
      AddBytes(word);
    } else {
      AddCharacters(word);
    }
    merger_.Merge(symbols_);
    if (owner_.by_scores_) ResolveStrangers();
  }
  const std::vector<TokenId>& symbols() const { return symbols_; }

 private:
  void EncodeWord(absl::string_view word, std::vector<TokenId>& ids) {
    const uint64_t hash = WordTable::Hash(word);
    const TokenId whole = owner_.words_.Find(word, hash);
    if (whole >= 0) {
      ids.push_back(whole);
      return;
    }
    if (cache_.Find(word, hash, ids)) return;
    Merge(word);
    cache_.Add(word, hash, symbols_.data(), symbols_.size());
    ids.insert(ids.end(), symbols_.begin(), symbols_.end());
  }

  void AddBytes(absl::string_view word) {
    bool after_unknown = false;
    for (const char byte : word) {
      const TokenId id = owner_.byte_ids_[static_cast<uint8_t>(byte)];
      if (id >= 0) {
        symbols_.push_back(id);
      } else if (owner_.unknown_ >= 0 &&
                 !(after_unknown && owner_.fuse_unknown_)) {
        symbols_.push_back(owner_.unknown_);
      }
      after_unknown = id < 0;
    }
  }

  TokenId Symbol(absl::string_view word, size_t at, int length) const {
    if (length == 1) return owner_.ascii_[static_cast<uint8_t>(word[at])];
    const auto id = owner_.characters_.find(DecodeUtf8(word.substr(at)));
    return id == owner_.characters_.end() ? -1 : id->second;
  }

  void AddCharacters(absl::string_view word) {
    int unknown = 0;  // characters that wait to become the unknown token
    const auto add_unknown = [&] {
      if (owner_.unknown_ < 0) unknown = 0;
      if (owner_.fuse_unknown_) unknown = std::min(unknown, 1);
      symbols_.insert(symbols_.end(), unknown, owner_.unknown_);
      unknown = 0;
    };
    int length;
    for (size_t at = 0; at < word.size(); at += length) {
      length = Utf8Length(word, at);
      const TokenId id = Symbol(word, at, length);
      if (id >= 0) {
        add_unknown();
        symbols_.push_back(id);
      } else if (owner_.by_scores_) {
        symbols_.push_back(owner_.Stranger(DecodeUtf8(word.substr(at))));
      } else if (!AddByteTokens(word.substr(at, length), symbols_)) {
        ++unknown;
      }
    }
    add_unknown();
  }

  // The tokens of the bytes of a character; false, and nothing, when one has
  // none.
  bool AddByteTokens(absl::string_view character, std::vector<TokenId>& out) {
    if (!owner_.byte_fallback_) return false;
    const size_t before = out.size();
    for (const char byte : character) {
      const TokenId id = owner_.byte_tokens_[static_cast<uint8_t>(byte)];
      if (id < 0) {
        out.resize(before);
        return false;
      }
      out.push_back(id);
    }
    return true;
  }

  void ResolveStrangers() {
    const auto stranger = [this](TokenId id) {
      return id >= owner_.vocab_size_;
    };
    if (std::none_of(symbols_.begin(), symbols_.end(), stranger)) return;
    resolved_.clear();
    bool after_unknown = false;
    for (const TokenId id : symbols_) {
      bool unknown = false;
      if (!stranger(id)) {
        resolved_.push_back(id);
      } else if (!AddByteTokens(EncodeUtf8(id - owner_.vocab_size_),
                                resolved_) &&
                 owner_.unknown_ >= 0) {
        unknown = true;
        if (!after_unknown || !owner_.fuse_unknown_) {
          resolved_.push_back(owner_.unknown_);
        }
      }
      after_unknown = unknown;
    }
    symbols_.swap(resolved_);
  }

  const BpeModel& owner_;
  BpeMerger::Session merger_;
  WordCache cache_;
  std::vector<TokenId> symbols_;
  std::vector<TokenId> resolved_;
};

// The words that become one token, found by encoding each token's own text.
void BpeModel::IndexWords(const Vocabulary& vocabulary) {
  const ByteAlphabet alphabet;
  Session session(*this, 0);
  std::vector<std::pair<std::string, TokenId>> found;
  for (TokenId id = 0; id < vocab_size_; ++id) {
    if (vocabulary.kinds[id] != TokenKind::kNormal) continue;
    const std::string& text = vocabulary.tokens[id];
    absl::optional<std::string> word = text;
    if (bytes_) word = alphabet.Decode(text);
    if (!word.has_value() || word->empty() || !IsUtf8(text)) continue;
    if (!ignore_merges_) {
      session.Merge(*word);
      if (session.symbols() != std::vector<TokenId>{id}) continue;
    }
    found.emplace_back(*std::move(word), id);
  }
  words_.Reserve(found.size());
  for (const auto& [word, id] : found) words_.Add(word, id);
}

std::unique_ptr<TokenModel::Session> BpeModel::NewSession(
    size_t text_bytes) const {
  return std::make_unique<Session>(*this, text_bytes);
}

}  // namespace penstock
