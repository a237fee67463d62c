#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/text/regex.h"
#include "common/model/text/word_scanner.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Cuts text into the pieces that no token reaches across. A pre-tokenizer is
// data: a row of steps applied one after the other, each to the pieces that the
// one before it left. Immutable; safe from any thread.
class PreTokenizer {
 public:
  // Patterns that have a scanner use it; others are compiled. Errors as
  // Regex::Compile, naming the step. INVALID_ARGUMENT for an empty pattern.
  static absl::StatusOr<PreTokenizer> Create(
      absl::Span<const PreTokenizerStep> steps);
  // The same without scanners: what they are held against.
  static absl::StatusOr<PreTokenizer> CreateWithoutScanners(
      absl::Span<const PreTokenizerStep> steps);

  // Working memory for one thread; must not outlive the pre-tokenizer.
  class Session {
   public:
    explicit Session(const PreTokenizer& owner);

    // Cuts `text` into text() and pieces(). `at_start`: whether it is the
    // beginning of all text. Preconditions: `text` is UTF-8 and lives as long
    // as the result is looked at. RESOURCE_EXHAUSTED as Regex, and when steps
    // blow text up too much.
    absl::Status Split(absl::string_view text, bool at_start);

    // What the pieces are ranges of: the given text unless a step changes it.
    absl::string_view text() const { return text_; }
    // In order, none empty.
    absl::Span<const TextRange> pieces() const { return pieces_; }

   private:
    struct Match {
      TextRange range;
      bool matched;
    };
    absl::Status Cut(size_t step);
    absl::Status FindMatches(size_t step, TextRange piece);
    void Arrange(const PreTokenizerStep& step);
    absl::Status Rewrite(const PreTokenizerStep& step, bool at_start);
    void Keep(TextRange range);

    const PreTokenizer& owner_;
    std::vector<std::unique_ptr<Regex::Matcher>> matchers_;  // or null
    absl::string_view text_;
    std::vector<TextRange> pieces_;
    std::vector<TextRange> cut_;
    std::vector<Match> matches_;
    std::string rewritten_;
    std::string rewriting_;
  };

 private:
  struct Step {
    PreTokenizerStep step;
    ScanWords scan = nullptr;
    std::unique_ptr<Regex> regex;  // null: has a scanner or needs none
  };

  PreTokenizer() = default;
  static absl::StatusOr<PreTokenizer> Make(
      absl::Span<const PreTokenizerStep> steps, bool scanners);

  std::vector<Step> steps_;
};

}  // namespace penstock
