// The methods of Python's str.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/case_functions.h"
#include "common/model/text/jinja/formatting.h"
#include "common/model/text/jinja/letters.h"
#include "common/model/text/jinja/methods.h"
#include "common/model/text/jinja/splitting.h"
#include "common/model/text/jinja/text_functions.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

using TextFunction = absl::StatusOr<Value> (*)(const Text&, const Invocation&);

template <TextFunction kFunction>
absl::StatusOr<Value> OfText(const Value& object, const Invocation& call) {
  return kFunction(*object.text(), call);
}

// A method that takes nothing.
template <TextFunction kFunction>
absl::StatusOr<Value> Alone(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return kFunction(text, call);
}

template <Side kSide>
absl::StatusOr<Value> Strip(const Text& text, const Invocation& call) {
  return Trim(text, kSide, call);
}

// The part of a text that a search is in, in bytes, and where it begins in
// characters. Empty and not `inside` when it begins after the end.
struct Window {
  Range range;
  int64_t begin;
  bool inside;
};

absl::StatusOr<Window> WindowOf(const Text& text, const Value* start,
                                const Value* stop, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  const auto size = static_cast<int64_t>(CountUtf8(text.bytes()));
  ASSIGN_OR_RETURN(int64_t from, IntegerArgument(call, start, 0));
  ASSIGN_OR_RETURN(
      int64_t to,
      IntegerArgument(call, stop, std::numeric_limits<int64_t>::max()));
  if (from < 0) from = from < -size ? 0 : from + size;
  if (to < 0) to = to < -size ? 0 : to + size;
  to = std::min(to, size);
  if (from > to) return Window{{0, 0}, from, false};
  Window window = {{0, 0}, from, true};
  size_t at = 0;
  for (int64_t i = 0; i < to; ++i) {
    if (i == from) window.range.begin = at;
    at += Utf8Length(text.bytes(), at);
  }
  if (from == to) window.range.begin = at;
  window.range.end = at;
  return window;
}

// Whether the text begins (or ends) with the argument, a str or a tuple of.
template <bool kEnd>
absl::StatusOr<Value> HasAffix(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"affix", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(text, bound[1], bound[2], call));
  const absl::string_view bytes = text.bytes().substr(
      window.range.begin, window.range.end - window.range.begin);
  const auto matches = [&](const Text& affix) {
    return window.inside && (kEnd ? absl::EndsWith(bytes, affix.bytes())
                                  : absl::StartsWith(bytes, affix.bytes()));
  };
  if (const Text* affix = bound[0]->text()) return Value(matches(*affix));
  const List* affixes = bound[0]->list();
  if (affixes == nullptr || !affixes->is_tuple()) {
    return call.Fail("takes a str or a tuple of strs");
  }
  for (const Value& affix : affixes->items) {
    RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
    if (affix.text() == nullptr) return call.Fail("takes a tuple of strs");
    if (matches(*affix.text())) return Value(true);
  }
  return Value(false);
}

// The place of a text in another, in characters; -1 when it is not there.
template <bool kLast>
absl::StatusOr<Value> Find(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"sub", "start", "end"}, 1));
  if (bound[0]->text() == nullptr) return call.Fail("takes a str");
  const absl::string_view needle = bound[0]->text()->bytes();
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(text, bound[1], bound[2], call));
  RETURN_IF_ERROR(TakeSearch(text.bytes(), needle, call.budget, call.line));
  const absl::string_view bytes = text.bytes().substr(
      window.range.begin, window.range.end - window.range.begin);
  const size_t at = kLast ? bytes.rfind(needle) : bytes.find(needle);
  if (!window.inside || at == absl::string_view::npos) {
    return Value(int64_t{-1});
  }
  return Value(window.begin +
               static_cast<int64_t>(CountUtf8(bytes.substr(0, at))));
}

template <bool kLast>
absl::StatusOr<Value> IndexOf(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(Value at, Find<kLast>(text, call));
  if (*at.integer() < 0) return call.Fail("does not find it");
  return at;
}

absl::StatusOr<Value> Count(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"sub", "start", "end"}, 1));
  if (bound[0]->text() == nullptr) return call.Fail("takes a str");
  const absl::string_view needle = bound[0]->text()->bytes();
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(text, bound[1], bound[2], call));
  RETURN_IF_ERROR(TakeSearch(text.bytes(), needle, call.budget, call.line));
  if (!window.inside) return Value(int64_t{0});
  const absl::string_view bytes = text.bytes().substr(
      window.range.begin, window.range.end - window.range.begin);
  if (needle.empty()) return Value(static_cast<int64_t>(CountUtf8(bytes)) + 1);
  int64_t count = 0;
  for (size_t at = bytes.find(needle); at != absl::string_view::npos;
       at = bytes.find(needle, at + needle.size())) {
    ++count;
  }
  return Value(count);
}

absl::StatusOr<Value> JoinOf(const Text& glue, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"iterable"}, 1));
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(*bound[0], call.budget, call.line));
  for (const Value& item : items->items) {
    if (item.text() == nullptr) {
      return call.Fail(absl::StrCat("takes strs, not a ", item.type_name()));
    }
  }
  return Join(*items, glue, call);
}

// What comes before, is, and comes after the first (or last) separator.
template <bool kLast>
absl::StatusOr<Value> Partition(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"sep"}, 1));
  const Text* separator = bound[0]->text();
  if (separator == nullptr || separator->empty()) {
    return call.Fail("takes a str that is not empty");
  }
  RETURN_IF_ERROR(
      TakeSearch(text.bytes(), separator->bytes(), call.budget, call.line));
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  const size_t at = kLast ? text.bytes().rfind(separator->bytes())
                          : text.bytes().find(separator->bytes());
  Value parts[3] = {TextValue(""), TextValue(""), TextValue("")};
  if (at == absl::string_view::npos) {
    parts[kLast ? 2 : 0] = Value(text);
  } else {
    const size_t after = at + separator->size();
    parts[0] = Value(text.Slice(0, at));
    parts[1] = *bound[0];
    parts[2] = Value(text.Slice(after, text.size()));
  }
  return MakeList({{parts[0], parts[1], parts[2]}, List::Kind::kTuple},
                  call.budget, call.line);
}

template <bool kEnd>
absl::StatusOr<Value> WithoutAffix(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"affix"}, 1));
  const Text* affix = bound[0]->text();
  if (affix == nullptr) return call.Fail("takes a str");
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  if (kEnd && absl::EndsWith(text.bytes(), affix->bytes())) {
    return Value(text.Slice(0, text.size() - affix->size()));
  }
  if (!kEnd && absl::StartsWith(text.bytes(), affix->bytes())) {
    return Value(text.Slice(affix->size(), text.size()));
  }
  return Value(text);
}

template <Side kSide>
absl::StatusOr<Value> Pad(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"width", "fillchar"}, 1));
  if (bound[0]->AsInteger() == nullptr) return call.Fail("takes a width");
  ASSIGN_OR_RETURN(const Text fill, TextArgument(call, bound[1], " "));
  if (CountUtf8(fill.bytes()) != 1) return call.Fail("fills with a character");
  return Padded(text, kSide, *bound[0]->AsInteger(), fill, call);
}

absl::StatusOr<Value> ZeroFill(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"width"}, 1));
  if (bound[0]->AsInteger() == nullptr) return call.Fail("takes a width");
  const bool has_sign = absl::StartsWith(text.bytes(), "-") ||
                        absl::StartsWith(text.bytes(), "+");
  const size_t sign = has_sign ? 1 : 0;
  ASSIGN_OR_RETURN(const Value digits,
                   Padded(text.Slice(sign, text.size()), Side::kLeft,
                          *bound[0]->AsInteger() - static_cast<int64_t>(sign),
                          Text("0", false), call));
  Text filled = text.Slice(0, sign);
  filled.Append(*digits.text());
  return Value(std::move(filled));
}

absl::StatusOr<Value> SplitLines(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"keepends"}, 0));
  const bool keep = bound[0] != nullptr && bound[0]->Truthy();
  ASSIGN_OR_RETURN(const std::vector<Text> lines,
                   LinesOf(text, keep, call.budget, call.line));
  List list;
  for (const Text& line : lines) list.items.emplace_back(line);
  return MakeList(std::move(list), call.budget, call.line);
}

bool IsDigit(char32_t c) {
  return IsDecimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089);
}

bool IsAscii(char32_t c) { return c < 0x80; }

// Whether the text is not empty and all its characters are so.
template <bool (*kPredicate)(char32_t), bool kEmpty = false>
absl::StatusOr<Value> All(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  for (size_t at = 0; at < text.size(); at += Utf8Length(text.bytes(), at)) {
    if (!kPredicate(DecodeUtf8(text.bytes().substr(at)))) return Value(false);
  }
  return Value(kEmpty || !text.empty());
}

// Whether there are letters of one case and none of the other.
template <bool kUpper>
absl::StatusOr<Value> IsInCase(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  return Value(
      HasCase(text.bytes(), kUpper ? LetterCase::kUpper : LetterCase::kLower));
}

constexpr MethodRow kMethods[] = {
    {"capitalize", OfText<Alone<Capitalize>>},
    {"center", OfText<Pad<Side::kBoth>>},
    {"count", OfText<Count>},
    {"endswith", OfText<HasAffix<true>>},
    {"find", OfText<Find<false>>},
    {"format", OfText<FormatBraces>},
    {"index", OfText<IndexOf<false>>},
    {"isalnum", OfText<Alone<All<IsAlphanumeric>>>},
    {"isalpha", OfText<Alone<All<IsAlphabetic>>>},
    {"isascii", OfText<Alone<All<IsAscii, true>>>},
    {"isdecimal", OfText<Alone<All<IsDecimal>>>},
    {"isdigit", OfText<Alone<All<IsDigit>>>},
    {"islower", OfText<Alone<IsInCase<false>>>},
    {"isprintable", OfText<Alone<All<IsPrintable, true>>>},
    {"isspace", OfText<Alone<All<IsPythonSpace>>>},
    {"isupper", OfText<Alone<IsInCase<true>>>},
    {"join", OfText<JoinOf>},
    {"ljust", OfText<Pad<Side::kRight>>},
    {"lower", OfText<Alone<Lower>>},
    {"lstrip", OfText<Strip<Side::kLeft>>},
    {"partition", OfText<Partition<false>>},
    {"removeprefix", OfText<WithoutAffix<false>>},
    {"removesuffix", OfText<WithoutAffix<true>>},
    {"replace", OfText<Replace>},
    {"rfind", OfText<Find<true>>},
    {"rindex", OfText<IndexOf<true>>},
    {"rjust", OfText<Pad<Side::kLeft>>},
    {"rpartition", OfText<Partition<true>>},
    {"rsplit", OfText<RightSplit>},
    {"rstrip", OfText<Strip<Side::kRight>>},
    {"split", OfText<Split>},
    {"splitlines", OfText<SplitLines>},
    {"startswith", OfText<HasAffix<false>>},
    {"strip", OfText<Strip<Side::kBoth>>},
    {"swapcase", OfText<Alone<SwapCase>>},
    {"title", OfText<Alone<Title>>},
    {"upper", OfText<Alone<Upper>>},
    {"zfill", OfText<ZeroFill>},
};

}  // namespace

absl::Span<const MethodRow> TextMethods() { return kMethods; }

}  // namespace penstock::jinja
