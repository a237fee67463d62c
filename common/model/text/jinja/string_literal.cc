#include "common/model/text/jinja/string_literal.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// An escape of one letter and what it stands for; '\0' for none.
char Simple(char letter) {
  switch (letter) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return letter;
    default:
      return '\0';
  }
}

size_t HexDigits(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

int DigitValue(char c) {
  if (absl::ascii_isdigit(c)) return c - '0';
  return absl::ascii_tolower(c) - 'a' + 10;
}

// Reads what follows a backslash.
class Decoder {
 public:
  Decoder(absl::string_view body, int line) : body_(body), line_(line) {}

  absl::StatusOr<std::string> Run() {
    std::string text;
    while (at_ < body_.size()) {
      if (body_[at_] != '\\' || at_ + 1 == body_.size()) {
        text.push_back(body_[at_++]);
        continue;
      }
      ++at_;
      ASSIGN_OR_RETURN(const std::string escaped, Escape());
      text += escaped;
    }
    return text;
  }

 private:
  absl::StatusOr<std::string> Escape() {
    const char letter = body_[at_++];
    if (letter == '\n') return std::string();
    if (const char simple = Simple(letter)) return std::string(1, simple);
    if (letter >= '0' && letter <= '7') return Octal(letter - '0');
    if (const size_t digits = HexDigits(letter)) return Hex(letter, digits);
    if (letter == 'N') return Unknown(line_, "escape '\\N'");
    if (!absl::ascii_isascii(letter)) {
      return Unknown(line_, "a backslash before a character outside ASCII");
    }
    return std::string({'\\', letter});
  }

  absl::StatusOr<std::string> Octal(int value) {
    for (int i = 0;
         i < 2 && at_ < body_.size() && body_[at_] >= '0' && body_[at_] <= '7';
         ++i) {
      value = value * 8 + (body_[at_++] - '0');
    }
    return EncodeUtf8(static_cast<char32_t>(value));
  }

  absl::StatusOr<std::string> Hex(char letter, size_t digits) {
    uint32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (at_ == body_.size() || !absl::ascii_isxdigit(body_[at_])) {
        return Failure(line_, absl::StrCat("escape '\\", std::string(1, letter),
                                           "' needs ", digits, " hex digits"));
      }
      value = value << 4 | static_cast<uint32_t>(DigitValue(body_[at_++]));
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      return Failure(line_, absl::StrCat("escape '\\", std::string(1, letter),
                                         "' names no character"));
    }
    return EncodeUtf8(value);
  }

  absl::string_view body_;
  int line_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::string> DecodeStringLiteral(absl::string_view body,
                                                int line) {
  return Decoder(body, line).Run();
}

}  // namespace penstock::jinja
