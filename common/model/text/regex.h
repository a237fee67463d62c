#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {

// A compiled pattern over UTF-8 text, in the dialect of a tokenizer.json
// (Oniguruma's) as far as PCRE2 can be made to mean the same. Immutable; any
// number of Matchers may use it from any thread at once. Patterns come with a
// model, never from a client.
class Regex {
 public:
  // INVALID_ARGUMENT names the pattern and what is wrong with it; UNIMPLEMENTED
  // a construct that the two dialects understand differently.
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
