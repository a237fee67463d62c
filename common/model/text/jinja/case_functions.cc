#include "common/model/text/jinja/case_functions.h"

#include <string>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/text/jinja/letters.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

constexpr char32_t kSigma = 0x3A3;

std::string Lowered(absl::string_view text, size_t at) {
  const char32_t c = DecodeUtf8(text.substr(at));
  if (c == kSigma && IsFinalSigma(text, at)) return EncodeUtf8(0x3C2);
  return InCase(c, LetterCase::kLower);
}

// `change` gives what stands for the character at an offset.
template <typename Change>
absl::StatusOr<Value> Mapped(const Text& text, const Invocation& call,
                             Change change) {
  // A letter takes three times its bytes at most.
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size() * 3, call.line));
  Text mapped;
  size_t at = 0;
  for (const Text::Run& run : text.runs()) {
    std::string bytes;
    while (at < run.end) {
      bytes += change(at);
      at += Utf8Length(text.bytes(), at);
    }
    mapped.Append(bytes, run.from_message);
  }
  return Value(std::move(mapped));
}

bool IsCased(char32_t c) {
  return IsUpperCase(c) || IsLowerCase(c) || IsTitleCase(c);
}

bool BeginsWord(char32_t c) {
  return IsPythonSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' ||
         c == '<';
}

}  // namespace

absl::StatusOr<Value> Upper(const Text& text, const Invocation& call) {
  return Mapped(text, call, [&](size_t at) {
    return InCase(DecodeUtf8(text.bytes().substr(at)), LetterCase::kUpper);
  });
}

absl::StatusOr<Value> Lower(const Text& text, const Invocation& call) {
  return Mapped(text, call,
                [&](size_t at) { return Lowered(text.bytes(), at); });
}

absl::StatusOr<Value> Capitalize(const Text& text, const Invocation& call) {
  return Mapped(text, call, [&](size_t at) {
    if (at > 0) return Lowered(text.bytes(), at);
    return InCase(DecodeUtf8(text.bytes()), LetterCase::kTitle);
  });
}

absl::StatusOr<Value> Title(const Text& text, const Invocation& call) {
  bool inside = false;
  return Mapped(text, call, [&](size_t at) {
    const char32_t c = DecodeUtf8(text.bytes().substr(at));
    const bool begins = !inside;
    inside = IsCased(c);
    return begins ? InCase(c, LetterCase::kTitle) : Lowered(text.bytes(), at);
  });
}

absl::StatusOr<Value> TitleWords(const Text& text, const Invocation& call) {
  bool begins = true;
  size_t word = 0;  // where the letters after a word's first one begin
  return Mapped(text, call, [&](size_t at) {
    const char32_t c = DecodeUtf8(text.bytes().substr(at));
    if (BeginsWord(c)) {
      begins = true;
      return EncodeUtf8(c);
    }
    if (begins) {
      begins = false;
      word = at + Utf8Length(text.bytes(), at);
      return InCase(c, LetterCase::kUpper);
    }
    // A final sigma looks at its own word only.
    size_t end = at;
    while (c == kSigma && end < text.size() &&
           !BeginsWord(DecodeUtf8(text.bytes().substr(end)))) {
      end += Utf8Length(text.bytes(), end);
    }
    if (c != kSigma) return InCase(c, LetterCase::kLower);
    return Lowered(text.bytes().substr(word, end - word), at - word);
  });
}

absl::StatusOr<Value> SwapCase(const Text& text, const Invocation& call) {
  return Mapped(text, call, [&](size_t at) {
    const char32_t c = DecodeUtf8(text.bytes().substr(at));
    if (IsUpperCase(c)) return Lowered(text.bytes(), at);
    return IsLowerCase(c) ? InCase(c, LetterCase::kUpper) : EncodeUtf8(c);
  });
}

}  // namespace penstock::jinja
