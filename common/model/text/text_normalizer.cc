#include "common/model/text/text_normalizer.h"

#include <utf8proc.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/tokenizer.h"
#include "common/model/text/unicode_class.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

using Kind = NormalizerStep::Kind;

constexpr size_t kMaxNormalizedBytes = 4 * kMaxTextBytes;
constexpr size_t kMaxPatternBytes = 256;

absl::Status TooLong() {
  return absl::ResourceExhaustedError("normalised text grows too long");
}

bool IsAscii(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

// ASCII is in every normal form.
absl::StatusOr<std::string> Compose(absl::string_view text, int options) {
  if (IsAscii(text)) return std::string(text);
  struct Free {
    void operator()(utf8proc_uint8_t* p) const { std::free(p); }
  };
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | options));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(made);
  if (length < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("normalising text: ", utf8proc_errmsg(length)));
  }
  return std::string(reinterpret_cast<const char*>(made), length);
}

std::string Lowercase(absl::string_view text) {
  std::string lower;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = DecodeUtf8(text.substr(at));
    // The one character whose small form is two.
    if (c == 0x130) {
      lower += "i\u0307";
    } else {
      lower += EncodeUtf8(static_cast<char32_t>(
          utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
    at += Utf8Length(text, at);
  }
  return lower;
}

std::string Strip(absl::string_view text, bool left, bool right) {
  size_t begin = 0;
  size_t end = 0;  // of what is not white space
  bool leading = true;
  for (size_t at = 0; at < text.size();) {
    const ClassedCharacter c = ClassAt(text, at);
    at += c.length;
    if ((c.classes & kWhiteSpace) == 0) {
      leading = false;
      end = at;
    } else if (leading) {
      begin = at;
    }
  }
  if (!left) begin = 0;
  if (!right) end = text.size();
  return begin >= end ? "" : std::string(text.substr(begin, end - begin));
}

absl::StatusOr<std::string> Replace(absl::string_view text,
                                    absl::string_view pattern,
                                    absl::string_view by) {
  if (text.size() / pattern.size() * by.size() > kMaxNormalizedBytes) {
    return TooLong();
  }
  return absl::StrReplaceAll(text, {{pattern, by}});
}

absl::StatusOr<std::string> ReplaceMatches(absl::string_view text,
                                           const Regex& regex,
                                           absl::string_view by) {
  Regex::Matcher matcher(regex);
  std::string out;
  size_t taken = 0;
  for (size_t at = 0; at <= text.size();) {
    ASSIGN_OR_RETURN(const absl::optional<Regex::Match> match,
                     matcher.Find(text, at));
    if (!match.has_value()) break;
    absl::StrAppend(&out, text.substr(taken, match->begin - taken), by);
    if (out.size() > kMaxNormalizedBytes) return TooLong();
    taken = at = match->end;
    if (match->begin != match->end) continue;
    if (at == text.size()) break;
    at += Utf8Length(text, at);
  }
  absl::StrAppend(&out, text.substr(taken));
  return out;
}

absl::StatusOr<std::string> ApplyStep(const NormalizerStep& step,
                                      const Regex* regex,
                                      absl::string_view text) {
  switch (step.kind) {
    case Kind::kNfc:
      return Compose(text, UTF8PROC_COMPOSE);
    case Kind::kNfd:
      return Compose(text, UTF8PROC_DECOMPOSE);
    case Kind::kNfkc:
      return Compose(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case Kind::kNfkd:
      return Compose(text, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    case Kind::kLowercase:
      return Lowercase(text);
    case Kind::kStrip:
      return Strip(text, step.left, step.right);
    case Kind::kPrepend:
      return text.empty() ? "" : absl::StrCat(step.text, text);
    case Kind::kReplace:
      return Replace(text, step.pattern, step.text);
    case Kind::kReplaceRegex:
      return ReplaceMatches(text, *regex, step.text);
  }
  return absl::InternalError("no such normalizer");
}

}  // namespace

absl::StatusOr<TextNormalizer> TextNormalizer::Create(
    absl::Span<const NormalizerStep> steps) {
  TextNormalizer normalizer;
  for (size_t i = 0; i < steps.size(); ++i) {
    const NormalizerStep& step = steps[i];
    const bool replaces =
        step.kind == Kind::kReplace || step.kind == Kind::kReplaceRegex;
    if ((replaces && step.pattern.empty()) ||
        step.text.size() > kMaxPatternBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "normalizer step ", i, " replaces '", step.pattern, "' by ",
          step.text.size(), " bytes; at most ", kMaxPatternBytes));
    }
    std::unique_ptr<Regex> regex;
    if (step.kind == Kind::kReplaceRegex) {
      ASSIGN_OR_RETURN(regex, Regex::Compile(step.pattern));
    }
    normalizer.steps_.push_back({step, std::move(regex)});
  }
  return normalizer;
}

absl::StatusOr<std::string> TextNormalizer::Apply(
    absl::string_view text) const {
  std::string made(text);
  for (const Step& step : steps_) {
    ASSIGN_OR_RETURN(made, ApplyStep(step.step, step.regex.get(), made));
  }
  return made;
}

}  // namespace penstock
