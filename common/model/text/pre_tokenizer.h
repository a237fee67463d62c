#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/regex.h"

namespace penstock {

// Cuts text into the pieces that BPE never merges across. A pre-tokenizer is
// data: a row of patterns applied one after the other, each to the pieces that
// the one before it left. Immutable; safe from any thread.
class PreTokenizer {
 public:
  // UNIMPLEMENTED names a pre-tokenizer that has no row, and those that have.
  static absl::StatusOr<PreTokenizer> Create(absl::string_view name);

  // Working memory for one thread; must not outlive the pre-tokenizer.
  class Session {
   public:
    explicit Session(const PreTokenizer& owner);

    // Pieces in order; together they are `text`, and point into it. What a
    // pattern matches is one piece, and so is what lies between two matches.
    // Precondition: `text` is UTF-8. RESOURCE_EXHAUSTED as Regex.
    absl::StatusOr<std::vector<absl::string_view>> Split(
        absl::string_view text);

   private:
    std::vector<std::unique_ptr<Regex::Matcher>> stages_;
  };

 private:
  explicit PreTokenizer(std::vector<std::unique_ptr<Regex>> stages)
      : stages_(std::move(stages)) {}

  std::vector<std::unique_ptr<Regex>> stages_;
};

}  // namespace penstock
