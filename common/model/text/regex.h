#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {

// A compiled PCRE2 pattern over UTF-8 text. Immutable; any number of Matchers
// may use it from any thread at once. Patterns are ours, never a client's.
class Regex {
 public:
  // INTERNAL names the pattern and what is wrong with it.
  static absl::StatusOr<std::unique_ptr<Regex>> Compile(
      absl::string_view pattern);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  struct Match {
    size_t begin;
    size_t end;
  };

  // The working memory of one thread's searches; must not outlive the Regex.
  class Matcher {
   public:
    explicit Matcher(const Regex& regex);
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

    // The first match at or after `from`. Precondition: `text` is UTF-8 and
    // `from` a character boundary. RESOURCE_EXHAUSTED when the match needs more
    // memory or backtracking than is allowed: the stack never grows with text.
    absl::StatusOr<absl::optional<Match>> Find(absl::string_view text,
                                               size_t from);

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);

  std::unique_ptr<Code> code_;
};

}  // namespace penstock
