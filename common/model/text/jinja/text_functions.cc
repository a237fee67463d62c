#include "common/model/text/jinja/text_functions.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// Letters of `text` as `change` maps them by their offset.
template <typename Change>
absl::StatusOr<Value> MapAscii(const Text& text, const Invocation& call,
                               Change change) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  std::string bytes(text.bytes());
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!absl::ascii_isascii(bytes[i])) {
      return Unknown(call.line,
                     absl::StrCat(call.name, " of letters outside ASCII"));
    }
    bytes[i] = change(bytes[i], i);
  }
  Text mapped;
  size_t begin = 0;
  for (const Text::Run& run : text.runs()) {
    mapped.Append(absl::string_view(bytes).substr(begin, run.end - begin),
                  run.from_message);
    begin = run.end;
  }
  return Value(std::move(mapped));
}

// Splits at runs of white space, which also goes from both ends: all but what
// comes after the last split that is allowed.
List SplitAtSpace(const Text& text, int64_t most) {
  List words;
  const absl::string_view bytes = text.bytes();
  size_t at = Stripped(bytes, Side::kLeft).begin;
  while (at < bytes.size()) {
    size_t end = at;
    while (end < bytes.size() &&
           !IsPythonSpace(DecodeUtf8(bytes.substr(end)))) {
      end += Utf8Length(bytes, end);
    }
    if (static_cast<int64_t>(words.items.size()) == most) {
      words.items.emplace_back(text.Slice(at, bytes.size()));
      return words;
    }
    words.items.emplace_back(text.Slice(at, end));
    at = end + Stripped(bytes.substr(end), Side::kLeft).begin;
  }
  return words;
}

List SplitAt(const Text& text, absl::string_view separator, int64_t most) {
  List parts;
  size_t begin = 0;
  while (static_cast<int64_t>(parts.items.size()) < most) {
    const size_t at = text.bytes().find(separator, begin);
    if (at == absl::string_view::npos) break;
    parts.items.emplace_back(text.Slice(begin, at));
    begin = at + separator.size();
  }
  parts.items.emplace_back(text.Slice(begin, text.size()));
  return parts;
}

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

}  // namespace

absl::StatusOr<Value> Trim(const Text& text, Side side,
                           const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"chars"}, 0));
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  ASSIGN_OR_RETURN(const Text chars, TextArgument(call, bound[0], ""));
  const bool given = bound[0] != nullptr && !bound[0]->is_none();
  if (given && chars.empty()) return Value(text);
  RETURN_IF_ERROR(
      TakeSearch(text.bytes(), chars.bytes(), call.budget, call.line));
  const Range left = Stripped(text.bytes(), side, chars.bytes());
  return Value(text.Slice(left.begin, left.end));
}

absl::StatusOr<Value> Upper(const Text& text, const Invocation& call) {
  return MapAscii(text, call,
                  [](char c, size_t) { return absl::ascii_toupper(c); });
}

absl::StatusOr<Value> Lower(const Text& text, const Invocation& call) {
  return MapAscii(text, call,
                  [](char c, size_t) { return absl::ascii_tolower(c); });
}

absl::StatusOr<Value> Capitalize(const Text& text, const Invocation& call) {
  return MapAscii(text, call, [](char c, size_t at) {
    return at == 0 ? absl::ascii_toupper(c) : absl::ascii_tolower(c);
  });
}

absl::StatusOr<Value> Replace(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"old", "new", "count"}, 2));
  if (bound[0]->text() == nullptr || bound[1]->text() == nullptr) {
    return call.Fail("takes two strs");
  }
  const absl::string_view old = bound[0]->text()->bytes();
  const Text& fresh = *bound[1]->text();
  ASSIGN_OR_RETURN(int64_t left, IntegerArgument(call, bound[2], -1));
  if (left < 0) left = kAll;
  if (old.empty()) return Unknown(call.line, "replacing an empty str");
  RETURN_IF_ERROR(TakeSearch(text.bytes(), old, call.budget, call.line));
  Text replaced;
  size_t begin = 0;
  for (; left > 0; --left) {
    const size_t at = text.bytes().find(old, begin);
    if (at == absl::string_view::npos) break;
    RETURN_IF_ERROR(
        call.budget.TakeBytes(at - begin + fresh.size(), call.line));
    replaced.Append(text, begin, at);
    replaced.Append(fresh);
    begin = at + old.size();
  }
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size() - begin, call.line));
  replaced.Append(text, begin, text.size());
  return Value(std::move(replaced));
}

absl::StatusOr<Value> Split(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"sep", "maxsplit"}, 0));
  ASSIGN_OR_RETURN(const Text separator, TextArgument(call, bound[0], ""));
  ASSIGN_OR_RETURN(int64_t most, IntegerArgument(call, bound[1], -1));
  if (most < 0) most = kAll;
  RETURN_IF_ERROR(
      TakeSearch(text.bytes(), separator.bytes(), call.budget, call.line));
  // A part for each byte at worst.
  constexpr size_t kPart = sizeof(Value) + sizeof(Text);
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  List parts;
  if (bound[0] == nullptr || bound[0]->is_none()) {
    parts = SplitAtSpace(text, most);
  } else if (separator.empty()) {
    return call.Fail("needs a separator that is not empty");
  } else {
    parts = SplitAt(text, separator.bytes(), most);
  }
  RETURN_IF_ERROR(call.budget.TakeBytes(parts.items.size() * kPart, call.line));
  return MakeList(std::move(parts), call.budget, call.line);
}

absl::StatusOr<Value> Join(const List& items, const Text& glue,
                           const Invocation& call) {
  Text joined;
  for (size_t i = 0; i < items.items.size(); ++i) {
    ASSIGN_OR_RETURN(const Text item, Printed(items.items[i], call.line));
    RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
    RETURN_IF_ERROR(
        call.budget.TakeBytes(item.size() + glue.size(), call.line));
    if (i > 0) joined.Append(glue);
    joined.Append(item);
  }
  return Value(std::move(joined));
}

}  // namespace penstock::jinja
