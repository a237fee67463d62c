#include "common/model/text/pre_tokenizer.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/tokenizer.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

using Behavior = PreTokenizerStep::Behavior;
using Kind = PreTokenizerStep::Kind;

// A step puts at most this much in place of a space.
constexpr size_t kMaxMarkBytes = 4;
constexpr size_t kMaxRewrittenBytes = kMaxMarkBytes * kMaxTextBytes;

// Whether every stretch, matched or not, becomes a piece of its own; without a
// stretch between matches, what is removed or not makes no difference.
bool IsPlainCut(const PreTokenizerStep& step) {
  return step.kind == Kind::kRegex && step.behavior == Behavior::kIsolated;
}

// Patterns that leave nothing unmatched.
bool CoversEverything(absl::string_view pattern) {
  return absl::EndsWith(pattern, R"(|\s+(?!\S)|\s+)") &&
         absl::StrContains(pattern, R"( ?[^\s)");
}

bool MayScan(const PreTokenizerStep& step) {
  if (IsPlainCut(step)) return true;
  return step.kind == Kind::kRegex && step.behavior == Behavior::kRemoved &&
         step.invert && CoversEverything(step.pattern);
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::Make(
    absl::Span<const PreTokenizerStep> steps, bool scanners) {
  PreTokenizer made;
  for (size_t i = 0; i < steps.size(); ++i) {
    Step step;
    step.step = steps[i];
    if (step.step.pattern.empty() && step.step.kind != Kind::kPrefixSpace) {
      return absl::InvalidArgumentError(
          absl::StrCat("pre-tokenizer step ", i, " has an empty pattern"));
    }
    if (step.step.kind == Kind::kMetaspace &&
        step.step.pattern.size() > kMaxMarkBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("pre-tokenizer step ", i, " replaces spaces by '",
                       step.step.pattern, "', which is more than a character"));
    }
    if (scanners && MayScan(step.step)) {
      step.scan = FindWordScanner(step.step.pattern);
    }
    if (step.step.kind == Kind::kRegex && step.scan == nullptr) {
      ASSIGN_OR_RETURN(step.regex, Regex::Compile(step.step.pattern));
    }
    made.steps_.push_back(std::move(step));
  }
  return made;
}

absl::StatusOr<PreTokenizer> PreTokenizer::Create(
    absl::Span<const PreTokenizerStep> steps) {
  return Make(steps, /*scanners=*/true);
}

absl::StatusOr<PreTokenizer> PreTokenizer::CreateWithoutScanners(
    absl::Span<const PreTokenizerStep> steps) {
  return Make(steps, /*scanners=*/false);
}

PreTokenizer::Session::Session(const PreTokenizer& owner) : owner_(owner) {
  for (const Step& step : owner.steps_) {
    matchers_.push_back(step.regex == nullptr
                            ? nullptr
                            : std::make_unique<Regex::Matcher>(*step.regex));
  }
}

absl::Status PreTokenizer::Session::Split(absl::string_view text,
                                          bool at_start) {
  text_ = text;
  pieces_.clear();
  if (!text.empty()) pieces_.push_back({0, text.size()});
  for (size_t i = 0; i < owner_.steps_.size(); ++i) {
    const Step& step = owner_.steps_[i];
    cut_.clear();
    if (step.scan != nullptr) {
      for (const TextRange piece : pieces_) step.scan(text_, piece, cut_);
    } else if (step.step.kind == Kind::kMetaspace ||
               step.step.kind == Kind::kPrefixSpace) {
      RETURN_IF_ERROR(Rewrite(step.step, at_start));
    } else {
      RETURN_IF_ERROR(Cut(i));
    }
    pieces_.swap(cut_);
  }
  return absl::OkStatus();
}

absl::Status PreTokenizer::Session::Cut(size_t step) {
  for (const TextRange piece : pieces_) {
    matches_.clear();
    RETURN_IF_ERROR(FindMatches(step, piece));
    Arrange(owner_.steps_[step].step);
  }
  return absl::OkStatus();
}

// All of `piece` as matches and what lies between.
absl::Status PreTokenizer::Session::FindMatches(size_t step, TextRange piece) {
  const PreTokenizerStep& what = owner_.steps_[step].step;
  const absl::string_view text =
      text_.substr(piece.begin, piece.end - piece.begin);
  size_t taken = 0;
  size_t at = 0;
  const auto add = [&](size_t begin, size_t end, bool matched) {
    if (begin == end) return;
    matches_.push_back(
        {{piece.begin + begin, piece.begin + end}, matched != what.invert});
  };
  while (at < text.size()) {
    Regex::Match match;
    if (what.kind == Kind::kLiteral) {
      match.begin = text.find(what.pattern, at);
      if (match.begin == absl::string_view::npos) break;
      match.end = match.begin + what.pattern.size();
    } else {
      ASSIGN_OR_RETURN(const absl::optional<Regex::Match> found,
                       matchers_[step]->Find(text, at));
      if (!found.has_value()) break;
      match = *found;
    }
    if (match.end == match.begin) {
      // A match of nothing cuts nothing.
      if (match.end == text.size()) break;
      at = match.end + Utf8Length(text, match.end);
      continue;
    }
    add(taken, match.begin, false);
    add(match.begin, match.end, true);
    at = taken = match.end;
  }
  add(taken, text.size(), false);
  return absl::OkStatus();
}

// Pieces out of matches_, as the behaviour says.
void PreTokenizer::Session::Arrange(const PreTokenizerStep& step) {
  const size_t count = matches_.size();
  const size_t first = cut_.size();
  for (size_t i = 0; i < count; ++i) {
    const Match& match = matches_[i];
    const bool follows = cut_.size() > first;
    bool join = false;
    switch (step.behavior) {
      case Behavior::kIsolated:
        break;
      case Behavior::kRemoved:
        if (match.matched) continue;
        break;
      case Behavior::kContiguous:
        join = i > 0 && match.matched == matches_[i - 1].matched;
        break;
      case Behavior::kMergedWithPrevious:
        join = follows && match.matched && !matches_[i - 1].matched;
        break;
      case Behavior::kMergedWithNext:
        join = follows && !match.matched && matches_[i - 1].matched;
        break;
    }
    if (join) {
      cut_.back().end = match.range.end;
    } else {
      cut_.push_back(match.range);
    }
  }
}

// Steps that change text: it is written anew, and the pieces with it.
absl::Status PreTokenizer::Session::Rewrite(const PreTokenizerStep& step,
                                            bool at_start) {
  const bool metaspace = step.kind == Kind::kMetaspace;
  const absl::string_view mark =
      metaspace ? absl::string_view(step.pattern) : absl::string_view(" ");
  rewriting_.clear();
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const TextRange piece = pieces_[i];
    const absl::string_view text =
        text_.substr(piece.begin, piece.end - piece.begin);
    if (rewriting_.size() + (text.size() + 1) * mark.size() >
        kMaxRewrittenBytes) {
      return absl::ResourceExhaustedError(
          "text of spaces grows too long on its way to tokens");
    }
    const size_t begin = rewriting_.size();
    const bool marked =
        absl::StartsWith(text, mark) || (metaspace && text[0] == ' ');
    const bool first = at_start && i == 0 && piece.begin == 0;
    const bool prefixed =
        !metaspace || step.prepend == PreTokenizerStep::Prepend::kAlways ||
        (step.prepend == PreTokenizerStep::Prepend::kFirst && first);
    if (prefixed && !marked) rewriting_.append(mark.data(), mark.size());
    for (const char c : text) {
      if (metaspace && c == ' ') {
        rewriting_.append(mark.data(), mark.size());
      } else {
        rewriting_.push_back(c);
      }
    }
    // Each mark begins a piece.
    size_t from = begin;
    if (metaspace && step.split) {
      for (;;) {
        const size_t next = rewriting_.find(step.pattern, from + 1);
        if (next == std::string::npos) break;
        cut_.push_back({from, next});
        from = next;
      }
    }
    cut_.push_back({from, rewriting_.size()});
  }
  rewritten_.swap(rewriting_);
  text_ = rewritten_;
  return absl::OkStatus();
}

}  // namespace penstock
