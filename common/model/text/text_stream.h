#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {

// Turns token bytes into text that may be sent at once: every piece is whole
// UTF-8 characters, as early as possible. Bytes that cannot start or continue
// a character become U+FFFD once per maximal ill-formed subpart (Unicode 15,
// section 3.9, "U+FFFD Substitution of Maximal Subparts").
// A value type that serialises with its owner: its state is `tail()`.
class Utf8Assembler {
 public:
  Utf8Assembler() = default;
  // Restores a state that tail() gave.
  explicit Utf8Assembler(std::string tail) : tail_(std::move(tail)) {}

  std::string Push(absl::string_view bytes);
  // What is left at the end, as U+FFFD; the tail is empty afterwards.
  std::string Flush();
  const std::string& tail() const { return tail_; }

 private:
  std::string tail_;  // an unfinished character: at most 3 bytes
};

// Holds back text that may become a stop string, so that none ever leaks.
// A value type: its state is `held()`.
class StopMatcher {
 public:
  // Empty strings are not allowed (checked at the edge).
  explicit StopMatcher(std::vector<std::string> stops = {},
                       std::string held = "")
      : stops_(std::move(stops)), held_(std::move(held)) {}

  struct Result {
    std::string text;      // may be delivered
    bool stopped = false;  // a stop string matched; it is not in `text`
  };
  // Precondition: no earlier Push stopped.
  Result Push(absl::string_view text);
  // At the end of generation: what was held back is text after all.
  std::string Flush();

  const std::string& held() const { return held_; }
  const std::vector<std::string>& stops() const { return stops_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace penstock
