#include "common/model/text/unigram_model.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/model/byte_token.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

constexpr size_t kMaxTokenBytes = 512;
// How much worse a character without a token is than the worst token.
constexpr double kUnknownPenalty = 10;

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary)
    : scores_(vocabulary.scores),
      unknown_(vocabulary.use_unknown ? vocabulary.unknown : -1),
      byte_fallback_(vocabulary.byte_fallback),
      fuse_unknown_(vocabulary.fuse_unknown),
      byte_tokens_(FindByteTokens(vocabulary)) {}

absl::StatusOr<std::unique_ptr<UnigramModel>> UnigramModel::Create(
    const Vocabulary& vocabulary) {
  auto model = absl::WrapUnique(new UnigramModel(vocabulary));
  double worst = 0;
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const std::string& text = vocabulary.tokens[i];
    if (vocabulary.kinds[i] != TokenKind::kNormal) continue;
    worst = std::min(worst, vocabulary.scores[i]);
    if (text.empty()) continue;
    if (text.size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer.ggml.tokens[", i, "]: ", text.size(),
                       " bytes, more than ", kMaxTokenBytes));
    }
    model->trie_.Add(text, static_cast<TokenId>(i));
  }
  model->unknown_score_ = worst - kUnknownPenalty;
  return model;
}

class UnigramModel::Session : public TokenModel::Session {
 public:
  explicit Session(const UnigramModel& owner) : owner_(owner) {}

  void Encode(absl::string_view piece, std::vector<TokenId>& ids) override {
    FindPaths(piece);
    // From the end, the best path backwards.
    best_.clear();
    for (size_t end = piece.size(); end > 0; end = paths_[end].begin) {
      best_.push_back(end);
    }
    bool after_unknown = false;
    for (auto end = best_.rbegin(); end != best_.rend(); ++end) {
      const Path& path = paths_[*end];
      if (path.id != kStranger) {
        ids.push_back(path.id);
        after_unknown = false;
        continue;
      }
      const size_t begin = path.begin;
      if (AddByteTokens(piece.substr(begin, *end - begin), ids)) {
        after_unknown = false;
        continue;
      }
      if (owner_.unknown_ >= 0 && !(after_unknown && owner_.fuse_unknown_)) {
        ids.push_back(owner_.unknown_);
      }
      after_unknown = true;
    }
  }

 private:
  static constexpr TokenId kNone = -1;
  static constexpr TokenId kStranger = -2;  // a character without a token

  // The best way to a place: its last token and where that begins.
  struct Path {
    double score = 0;
    size_t begin = 0;
    TokenId id = kNone;
  };

  void FindPaths(absl::string_view piece) {
    paths_.assign(piece.size() + 1, Path());
    for (size_t at = 0; at < piece.size();) {
      const size_t length = Utf8Length(piece, at);
      const double score = paths_[at].score;
      bool known = false;  // whether the character alone is a token
      int64_t node = 0;
      for (size_t end = at; end < piece.size();) {
        node = owner_.trie_.Next(static_cast<uint32_t>(node), piece[end]);
        if (node < 0) break;
        ++end;
        const TokenId id = owner_.trie_.IdAt(static_cast<uint32_t>(node));
        if (id < 0) continue;
        Offer(end, {score + owner_.scores_[id], at, id});
        known = known || end - at == length;
      }
      if (!known) {
        Offer(at + length, {score + owner_.unknown_score_, at, kStranger});
      }
      at += length;
    }
  }

  void Offer(size_t end, const Path& path) {
    if (paths_[end].id == kNone || path.score > paths_[end].score) {
      paths_[end] = path;
    }
  }

  bool AddByteTokens(absl::string_view text, std::vector<TokenId>& ids) {
    if (!owner_.byte_fallback_) return false;
    const size_t before = ids.size();
    for (const char byte : text) {
      const TokenId id = owner_.byte_tokens_[static_cast<uint8_t>(byte)];
      if (id < 0) {
        ids.resize(before);
        return false;
      }
      ids.push_back(id);
    }
    return true;
  }

  const UnigramModel& owner_;
  std::vector<Path> paths_;  // by byte
  std::vector<size_t> best_;
};

std::unique_ptr<TokenModel::Session> UnigramModel::NewSession(
    size_t text_bytes) const {
  return std::make_unique<Session>(*this);
}

}  // namespace penstock
