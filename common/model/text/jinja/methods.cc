#include "common/model/text/jinja/methods.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/text_functions.h"

namespace penstock::jinja {
namespace {

// The public attributes of Python's str, dict and list.
constexpr absl::string_view kTextAttributes[] = {
    "capitalize",   "casefold",     "center",    "count",     "encode",
    "endswith",     "expandtabs",   "find",      "format",    "format_map",
    "index",        "isalnum",      "isalpha",   "isascii",   "isdecimal",
    "isdigit",      "isidentifier", "islower",   "isnumeric", "isprintable",
    "isspace",      "istitle",      "isupper",   "join",      "ljust",
    "lower",        "lstrip",       "maketrans", "partition", "removeprefix",
    "removesuffix", "replace",      "rfind",     "rindex",    "rjust",
    "rpartition",   "rsplit",       "rstrip",    "split",     "splitlines",
    "startswith",   "strip",        "swapcase",  "title",     "translate",
    "upper",        "zfill"};
constexpr absl::string_view kDictAttributes[] = {
    "clear", "copy",    "fromkeys",   "get",    "items", "keys",
    "pop",   "popitem", "setdefault", "update", "values"};
constexpr absl::string_view kListAttributes[] = {
    "append", "clear", "copy",   "count",   "extend", "index",
    "insert", "pop",   "remove", "reverse", "sort"};

// Makes a method of a function of texts.
template <absl::StatusOr<Value> (*kFunction)(const Text&, const Invocation&)>
absl::StatusOr<Value> OfText(const Value& object, const Invocation& call) {
  return kFunction(*object.text(), call);
}

template <Side kSide>
absl::StatusOr<Value> Strip(const Text& text, const Invocation& call) {
  return Trim(text, kSide, call);
}

// A method that takes nothing.
template <absl::StatusOr<Value> (*kFunction)(const Text&, const Invocation&)>
absl::StatusOr<Value> Alone(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return kFunction(text, call);
}

// Whether the text begins (or ends) with the argument, a str or a tuple of.
template <bool kEnd>
absl::StatusOr<Value> HasAffix(const Text& text, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"affix"}, 1));
  const auto matches = [&](const Text& affix) {
    return kEnd ? absl::EndsWith(text.bytes(), affix.bytes())
                : absl::StartsWith(text.bytes(), affix.bytes());
  };
  RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
  if (const Text* affix = bound[0]->text()) return Value(matches(*affix));
  const List* affixes = bound[0]->list();
  if (affixes == nullptr || !affixes->tuple) {
    return call.Fail("takes a str or a tuple of strs");
  }
  for (const Value& affix : affixes->items) {
    RETURN_IF_ERROR(call.budget.TakeBytes(text.size(), call.line));
    if (affix.text() == nullptr) return call.Fail("takes a tuple of strs");
    if (matches(*affix.text())) return Value(true);
  }
  return Value(false);
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

absl::StatusOr<Value> Get(const Value& object, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"key", "default"}, 1));
  RETURN_IF_ERROR(call.budget.TakeSteps(
      static_cast<int64_t>(object.dict()->items.size()), call.line));
  const Text* key = bound[0]->text();
  const Value* item =
      key == nullptr ? nullptr : object.dict()->Find(key->bytes());
  if (item != nullptr) return *item;
  return bound[1] == nullptr ? Value() : *bound[1];
}

absl::StatusOr<Value> Cycle(const Value& object, const Invocation& call) {
  const std::vector<Value>& values = call.arguments.positional;
  if (values.empty() || !call.arguments.named.empty()) {
    return call.Fail("takes values");
  }
  return values[static_cast<size_t>(object.loop()->index0) % values.size()];
}

enum class Part { kKeys, kValues, kItems };

template <Part kPart>
absl::StatusOr<Value> Parts(const Value& object, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  List parts;
  RETURN_IF_ERROR(call.budget.TakeBytes(
      object.dict()->items.size() * sizeof(Value), call.line));
  for (const auto& [key, value] : object.dict()->items) {
    RETURN_IF_ERROR(call.budget.TakeBytes(key.size(), call.line));
    if (kPart == Part::kValues) {
      parts.items.push_back(value);
      continue;
    }
    Value part(key);
    if (kPart == Part::kItems) {
      ASSIGN_OR_RETURN(part, MakeList({{std::move(part), value}, true},
                                      call.budget, call.line));
    }
    parts.items.push_back(std::move(part));
  }
  return MakeList(std::move(parts), call.budget, call.line);
}

struct Row {
  absl::string_view name;
  Method method;
};

constexpr Row kTextMethods[] = {
    {"capitalize", OfText<Alone<Capitalize>>},
    {"endswith", OfText<HasAffix<true>>},
    {"join", OfText<JoinOf>},
    {"lower", OfText<Alone<Lower>>},
    {"lstrip", OfText<Strip<Side::kLeft>>},
    {"replace", OfText<Replace>},
    {"rstrip", OfText<Strip<Side::kRight>>},
    {"split", OfText<Split>},
    {"startswith", OfText<HasAffix<false>>},
    {"strip", OfText<Strip<Side::kBoth>>},
    {"upper", OfText<Alone<Upper>>},
};

constexpr Row kDictMethods[] = {
    {"get", Get},
    {"items", Parts<Part::kItems>},
    {"keys", Parts<Part::kKeys>},
    {"values", Parts<Part::kValues>},
};

constexpr Row kLoopMethods[] = {
    {"cycle", Cycle},
};

}  // namespace

Method FindMethod(const Value& object, absl::string_view name) {
  absl::Span<const Row> rows;
  if (object.text() != nullptr) rows = kTextMethods;
  if (object.dict() != nullptr) rows = kDictMethods;
  if (object.loop() != nullptr) rows = kLoopMethods;
  for (const Row& row : rows) {
    if (row.name == name) return row.method;
  }
  return nullptr;
}

bool HasPythonAttribute(const Value& object, absl::string_view name) {
  absl::Span<const absl::string_view> names;
  if (object.text() != nullptr) names = kTextAttributes;
  if (object.dict() != nullptr) names = kDictAttributes;
  if (object.list() != nullptr) names = kListAttributes;
  return absl::c_linear_search(names, name);
}

}  // namespace penstock::jinja
