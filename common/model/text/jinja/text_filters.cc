// Filters of texts: any value that prints will do.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/case_functions.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/formatting.h"
#include "common/model/text/jinja/letters.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/text/jinja/text_functions.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

using TextFunction = absl::StatusOr<Value> (*)(const Text&, const Invocation&);

template <TextFunction kFunction>
absl::StatusOr<Value> OfText(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const Text text, Printed(value, call.budget, call.line));
  return kFunction(text, call);
}

// A filter that takes nothing.
template <TextFunction kFunction>
absl::StatusOr<Value> Alone(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return kFunction(text, call);
}

absl::StatusOr<Value> TrimBoth(const Text& text, const Invocation& call) {
  return Trim(text, Side::kBoth, call);
}

absl::StatusOr<Value> AsItIs(const Text& text, const Invocation&) {
  return Value(text);
}

// The method's arguments, as texts.
absl::StatusOr<Value> ReplacePrinted(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"old", "new", "count"}, 2));
  Arguments arguments;
  for (size_t i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(Text part, Printed(*bound[i], call.budget, call.line));
    arguments.positional.emplace_back(std::move(part));
  }
  if (bound[2] != nullptr) arguments.positional.push_back(*bound[2]);
  return Replace(text, {call.name, call.line, call.budget, call.world,
                        std::move(arguments)});
}

absl::StatusOr<Value> Format(const Text& text, const Invocation& call) {
  const Arguments& arguments = call.arguments;
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    return call.Fail("takes values by place or by name, not both");
  }
  Value values;
  if (arguments.named.empty()) {
    ASSIGN_OR_RETURN(values,
                     MakeList({arguments.positional, List::Kind::kTuple},
                              call.budget, call.line));
  } else {
    Dict dict;
    for (const auto& [name, value] : arguments.named) {
      dict.Put(Text(name, false), value);
    }
    ASSIGN_OR_RETURN(values, MakeDict(std::move(dict), call.budget, call.line));
  }
  ASSIGN_OR_RETURN(Text out,
                   FormatPercent(text, values, call.budget, call.line));
  return Value(std::move(out));
}

// The escapes of HTML.
absl::StatusOr<Value> Escape(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size() * 5, call.line));
  Text escaped;
  size_t begin = 0;
  for (const Text::Run& run : text.runs()) {
    std::string bytes;
    for (const char c : text.bytes().substr(begin, run.end - begin)) {
      switch (c) {
        case '&':
          bytes += "&amp;";
          break;
        case '<':
          bytes += "&lt;";
          break;
        case '>':
          bytes += "&gt;";
          break;
        case '\'':
          bytes += "&#39;";
          break;
        case '"':
          bytes += "&#34;";
          break;
        default:
          bytes.push_back(c);
      }
    }
    escaped.Append(bytes, run.from_message);
    begin = run.end;
  }
  return Value(std::move(escaped));
}

absl::StatusOr<Value> Center(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"width"}, 0));
  ASSIGN_OR_RETURN(const int64_t width, IntegerArgument(call, bound[0], 80));
  return Padded(text, Side::kBoth, width, Text(" ", false), call);
}

absl::StatusOr<Value> Indent(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"width", "first", "blank"}, 0));
  if (value.text() == nullptr) {
    return call.Fail(absl::StrCat("of a ", value.type_name()));
  }
  Text indent;
  if (bound[0] != nullptr && bound[0]->text() != nullptr) {
    indent = *bound[0]->text();
  } else {
    ASSIGN_OR_RETURN(const int64_t width, IntegerArgument(call, bound[0], 4));
    RETURN_IF_ERROR(call.budget.TakeBytes(
        static_cast<size_t>(std::max<int64_t>(width, 0)), call.line));
    indent.Append(std::string(std::max<int64_t>(width, 0), ' '), false);
  }
  const bool first = bound[1] != nullptr && bound[1]->Truthy();
  const bool blank = bound[2] != nullptr && bound[2]->Truthy();
  Text text = *value.text();
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size() + 1, call.line));
  // Jinja's quirk: so a text that ends in a newline has a last line.
  text.Append("\n", false);
  ASSIGN_OR_RETURN(const std::vector<Text> lines,
                   LinesOf(text, false, call.budget, call.line));
  Text out;
  for (size_t i = 0; i < lines.size(); ++i) {
    RETURN_IF_ERROR(
        call.budget.TakeBytes(indent.size() + lines[i].size() + 1, call.line));
    if (i > 0) out.Append("\n", false);
    if (i == 0 ? first : blank || !lines[i].empty()) out.Append(indent);
    out.Append(lines[i]);
  }
  return Value(std::move(out));
}

size_t OffsetOf(const Text& text, int64_t characters) {
  size_t at = 0;
  for (; characters > 0 && at < text.size(); --characters) {
    at += Utf8Length(text.bytes(), at);
  }
  return at;
}

absl::StatusOr<Value> Truncate(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"length", "killwords", "end", "leeway"}, 0));
  ASSIGN_OR_RETURN(const int64_t length, IntegerArgument(call, bound[0], 255));
  ASSIGN_OR_RETURN(const Text end, TextArgument(call, bound[2], "..."));
  ASSIGN_OR_RETURN(const int64_t leeway, IntegerArgument(call, bound[3], 5));
  const auto end_length = static_cast<int64_t>(CountUtf8(end.bytes()));
  if (length < end_length || leeway < 0) {
    return call.Fail(
        "takes no length below that of its end, or leeway below 0");
  }
  ASSIGN_OR_RETURN(const Value size, LengthOf(value, call));
  // Whatever is short enough stays as it is, text or not.
  if (*size.integer() - leeway <= length) return value;
  if (value.text() == nullptr) {
    return call.Fail(absl::StrCat("of a ", value.type_name()));
  }
  const Text& text = *value.text();
  RETURN_IF_ERROR(
      call.budget.TakeBytes(2 * text.size() + end.size(), call.line));
  size_t cut = OffsetOf(text, length - end_length);
  if (bound[1] == nullptr || !bound[1]->Truthy()) {
    const size_t space = text.bytes().substr(0, cut).rfind(' ');
    if (space != absl::string_view::npos) cut = space;
  }
  Text out = text.Slice(0, cut);
  out.Append(end);
  return Value(std::move(out));
}

absl::StatusOr<Value> CountWords(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size(); at += Utf8Length(text.bytes(), at)) {
    const char32_t c = DecodeUtf8(text.bytes().substr(at));
    const bool letter = c == '_' || IsAlphanumeric(c);
    if (letter && !inside) ++words;
    inside = letter;
  }
  return Value(words);
}

constexpr Filter kFilters[] = {
    {"capitalize", OfText<Alone<Capitalize>>},
    {"center", OfText<Center>},
    {"e", OfText<Alone<Escape>>},
    {"escape", OfText<Alone<Escape>>},
    {"format", OfText<Format>},
    {"indent", Indent},
    {"lower", OfText<Alone<Lower>>},
    {"replace", OfText<ReplacePrinted>},
    {"safe", OfText<Alone<AsItIs>>},
    {"string", OfText<Alone<AsItIs>>},
    {"title", OfText<Alone<TitleWords>>},
    {"trim", OfText<TrimBoth>},
    {"truncate", Truncate},
    {"upper", OfText<Alone<Upper>>},
    {"wordcount", OfText<Alone<CountWords>>},
};

}  // namespace

absl::Span<const Filter> TextFilters() { return kFilters; }

}  // namespace penstock::jinja
