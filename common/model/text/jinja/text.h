#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::jinja {

// Well-formed UTF-8 text that remembers, byte by byte, whether it came from a
// message or from the template. Joining and cutting keep that, so that what a
// client wrote can be told apart in the final prompt. A value type.
class Text {
 public:
  // Bytes from the end of the run before up to `end`.
  struct Run {
    size_t end;
    bool from_message;
    friend bool operator==(const Run&, const Run&) = default;
  };

  Text() = default;
  Text(absl::string_view bytes, bool from_message) {
    Append(bytes, from_message);
  }

  void Append(absl::string_view bytes, bool from_message);
  void Append(const Text& other) { Append(other, 0, other.size()); }
  // Bytes [begin, end) of `other`.
  void Append(const Text& other, size_t begin, size_t end);

  Text Slice(size_t begin, size_t end) const {
    Text slice;
    slice.Append(*this, begin, end);
    return slice;
  }

  absl::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // No run is empty and neighbours differ.
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::string bytes_;
  std::vector<Run> runs_;
};

// What Python's str.isspace() calls white space.
bool IsPythonSpace(char32_t code_point);

// The byte range of `text` that is left when characters of `strip` (empty:
// white space) are taken off its ends.
struct Range {
  size_t begin;
  size_t end;
};
enum class Side { kLeft, kRight, kBoth };
Range Stripped(absl::string_view text, Side side, absl::string_view strip = "");

}  // namespace penstock::jinja
