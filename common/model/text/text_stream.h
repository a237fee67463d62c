#pragma once

#include <cstddef>
#include <string>
#include <utility>
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
  // Restores a state that tail() gave. Precondition: IsTail(tail).
  explicit Utf8Assembler(std::string tail);

  // Whether `bytes` is a state: nothing, or a character that needs more bytes.
  static bool IsTail(absl::string_view bytes);

  std::string Push(absl::string_view bytes);
  // What is left at the end, as U+FFFD; the tail is empty afterwards.
  std::string Flush();
  const std::string& tail() const { return tail_; }

 private:
  std::string tail_;  // an unfinished character: at most 3 bytes
};

// Holds back text that may become a stop string, so that none ever leaks. The
// stop string that ends first wins, the longest of those that end together, so
// the result does not depend on how the text was cut into pushes.
// A value type: its state is `held()`.
class StopMatcher {
 public:
  // Precondition: no stop string is empty (checked at the edge), and held() of
  // a matcher of the same strings gave `held`.
  explicit StopMatcher(std::vector<std::string> stops = {},
                       absl::string_view held = "");

  struct Result {
    std::string text;      // may be delivered
    bool stopped = false;  // a stop string matched; it is not in `text`
  };
  // Precondition: no earlier Push stopped. Work is linear in `text` for each
  // stop string.
  Result Push(absl::string_view text);
  // At the end of generation: what was held back is text after all.
  std::string Flush();

  const std::string& held() const { return held_; }
  const std::vector<std::string>& stops() const { return stops_; }

 private:
  // How much of one stop string the text ends with (Knuth, Morris and Pratt).
  struct Progress {
    std::vector<size_t> borders;  // of each prefix: its longest border
    size_t matched = 0;
  };
  void Advance(size_t stop, char byte);
  void Restart();

  std::vector<std::string> stops_;
  std::vector<Progress> progress_;  // one for each stop string
  std::string held_;                // as long as the largest `matched`
  bool stopped_ = false;
};

}  // namespace penstock
