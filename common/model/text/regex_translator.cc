#include "common/model/text/regex_translator.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr absl::string_view kWhiteSpace = R"(\t-\r\x{85}\p{Z})";

// Escapes of letters that mean the same in both dialects.
constexpr absl::string_view kCommonEscapes = "wWdDbBnrtfpPxu";

}  // namespace

absl::Status RegexTranslator::Unknown(absl::string_view what) const {
  return absl::UnimplementedError(absl::StrCat("pattern ", pattern_, ": ", what,
                                               " at byte ", at_,
                                               " is not known to this build"));
}

absl::Status RegexTranslator::Escape() {
  if (at_ + 1 == pattern_.size()) return Unknown("a lone backslash");
  const char c = pattern_[at_ + 1];
  if (c == 's' || c == 'S') {
    if (in_class_ && c == 'S') return Unknown("\\S in a class");
    absl::StrAppend(&out_,
                    in_class_  ? ""
                    : c == 's' ? "["
                               : "[^",
                    kWhiteSpace, in_class_ ? "" : "]");
  } else if (c == 'u') {
    if (at_ + 6 > pattern_.size()) return Unknown("a short \\u");
    absl::StrAppend(&out_, "\\x{", pattern_.substr(at_ + 2, 4), "}");
    at_ += 4;
  } else {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    if ((letter && !absl::StrContains(kCommonEscapes, c)) || digit) {
      return Unknown(absl::StrCat("\\", pattern_.substr(at_ + 1, 1)));
    }
    out_.append(pattern_.data() + at_, 2);
  }
  at_ += 2;
  return absl::OkStatus();
}

absl::Status RegexTranslator::InClass() {
  const absl::string_view rest = pattern_.substr(at_);
  if (rest[0] == '[') return Unknown("a class within a class");
  if (absl::StartsWith(rest, "&&")) return Unknown("&&");
  if (rest[0] == ']') in_class_ = false;
  out_.push_back(rest[0]);
  ++at_;
  return absl::OkStatus();
}

// The opening of a group. Named, atomic and conditional ones, and options other
// than (?i), are not used by tokenizers.
absl::Status RegexTranslator::Group() {
  const absl::string_view rest = pattern_.substr(at_);
  if (absl::StartsWith(rest, "(*")) return Unknown("(*");
  if (absl::StartsWith(rest, "(?")) {
    for (const absl::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"}) {
      if (!absl::StartsWith(rest, known)) continue;
      out_.append(known.data(), known.size());
      at_ += known.size();
      return absl::OkStatus();
    }
    return Unknown(rest.substr(0, 4));
  }
  out_.push_back('(');
  ++at_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> RegexTranslator::Translate() {
  while (at_ < pattern_.size()) {
    const char c = pattern_[at_];
    if (c == '\\') {
      RETURN_IF_ERROR(Escape());
    } else if (in_class_) {
      RETURN_IF_ERROR(InClass());
    } else if (c == '(') {
      RETURN_IF_ERROR(Group());
    } else {
      out_.push_back(c);
      ++at_;
      if (c != '[') continue;
      in_class_ = true;
      if (absl::StartsWith(pattern_.substr(at_), "^"))
        out_.push_back('^'), ++at_;
      // A bracket that closes at once means itself in PCRE2 alone.
      if (absl::StartsWith(pattern_.substr(at_), "]")) {
        return Unknown("an empty class");
      }
    }
  }
  return std::move(out_);
}

}  // namespace penstock
