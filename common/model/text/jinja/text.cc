#include "common/model/text/jinja/text.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// Whether the character at the front of `character` is to be stripped.
bool IsStripped(absl::string_view character, absl::string_view strip) {
  if (strip.empty()) return IsPythonSpace(DecodeUtf8(character));
  return strip.find(character) != absl::string_view::npos;
}

}  // namespace

void Text::Append(absl::string_view bytes, bool from_message) {
  if (bytes.empty()) return;
  bytes_.append(bytes.data(), bytes.size());
  if (!runs_.empty() && runs_.back().from_message == from_message) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), from_message});
  }
}

void Text::Append(const Text& other, size_t begin, size_t end) {
  CHECK(begin <= end && end <= other.size()) << "slice outside the text";
  auto run =
      std::upper_bound(other.runs_.begin(), other.runs_.end(), begin,
                       [](size_t at, const Run& run) { return at < run.end; });
  while (begin < end) {
    const size_t stop = std::min(end, run->end);
    Append(other.bytes().substr(begin, stop - begin), run->from_message);
    begin = stop;
    ++run;
  }
}

bool IsPythonSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

Range Stripped(absl::string_view text, Side side, absl::string_view strip) {
  Range left = {0, text.size()};
  while (side != Side::kRight && left.begin < left.end) {
    const int length = Utf8Length(text, left.begin);
    if (!IsStripped(text.substr(left.begin, length), strip)) break;
    left.begin += length;
  }
  while (side != Side::kLeft && left.begin < left.end) {
    size_t last = left.end - 1;
    while ((text[last] & 0xC0) == 0x80) --last;
    if (!IsStripped(text.substr(last, left.end - last), strip)) break;
    left.end = last;
  }
  return left;
}

}  // namespace penstock::jinja
