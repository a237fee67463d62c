#include "common/model/text/jinja/filters.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/json.h"
#include "common/model/text/jinja/text_functions.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

constexpr int64_t kMaxIndent = 16;

absl::Status TakesNothing(const Invocation& call) {
  return call.Bind({}, 0).status();
}

// Makes a filter of a function of texts: any value that prints will do.
template <absl::StatusOr<Value> (*kFunction)(const Text&, const Invocation&)>
absl::StatusOr<Value> OfText(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const Text text, Printed(value, call.line));
  return kFunction(text, call);
}

absl::StatusOr<Value> TrimBoth(const Text& text, const Invocation& call) {
  return Trim(text, Side::kBoth, call);
}

absl::StatusOr<Value> PlainUpper(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  return Upper(text, call);
}

absl::StatusOr<Value> PlainLower(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  return Lower(text, call);
}

absl::StatusOr<Value> PlainCapitalize(const Text& text,
                                      const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  return Capitalize(text, call);
}

absl::StatusOr<Value> ToText(const Text& text, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  return Value(text);
}

absl::StatusOr<Value> Length(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  const auto size = [](size_t count) {
    return Value(static_cast<int64_t>(count));
  };
  if (const Text* text = value.text()) {
    RETURN_IF_ERROR(call.budget.TakeBytes(text->size(), call.line));
    return size(CountUtf8(text->bytes()));
  }
  if (const List* list = value.list()) return size(list->items.size());
  if (const Dict* dict = value.dict()) return size(dict->items.size());
  if (value.undefined() != nullptr) return size(0);
  return call.Fail(absl::StrCat("of a ", value.type_name()));
}

absl::StatusOr<Value> JoinItems(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"d"}, 0));
  Text glue;
  if (bound[0] != nullptr) {
    ASSIGN_OR_RETURN(glue, Printed(*bound[0], call.line));
  }
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  return Join(*items, glue, call);
}

absl::StatusOr<Value> Default(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"default_value", "boolean"}, 0));
  const bool falsy = bound[1] != nullptr && bound[1]->Truthy();
  if (value.undefined() == nullptr && !(falsy && !value.Truthy())) {
    return value;
  }
  return bound[0] == nullptr ? TextValue("") : *bound[0];
}

absl::StatusOr<Value> Json(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"ensure_ascii", "indent"}, 0));
  if (bound[0] != nullptr && bound[0]->Truthy()) {
    return Unknown(call.line, "argument 'ensure_ascii' of tojson");
  }
  absl::optional<int> indent;
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    ASSIGN_OR_RETURN(const int64_t spaces, IntegerArgument(call, bound[1], 0));
    if (spaces < 0 || spaces > kMaxIndent) {
      return Unknown(call.line, absl::StrCat("an indent of ", spaces));
    }
    indent = static_cast<int>(spaces);
  }
  ASSIGN_OR_RETURN(Text text, ToJson(value, indent, call.budget, call.line));
  return Value(std::move(text));
}

absl::StatusOr<Value> First(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  if (items->items.empty()) return Value(Undefined{"the first of no items"});
  return items->items.front();
}

absl::StatusOr<Value> Last(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  if (items->items.empty()) return Value(Undefined{"the last of no items"});
  return items->items.back();
}

absl::StatusOr<Value> ToList(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  return MakeList(List{items->items}, call.budget, call.line);
}

constexpr Filter kFilters[] = {
    {"capitalize", OfText<PlainCapitalize>},
    {"count", Length},
    {"d", Default},
    {"default", Default},
    {"first", First},
    {"join", JoinItems},
    {"last", Last},
    {"length", Length},
    {"list", ToList},
    {"lower", OfText<PlainLower>},
    {"replace", OfText<Replace>},
    {"string", OfText<ToText>},
    {"tojson", Json},
    {"trim", OfText<TrimBoth>},
    {"upper", OfText<PlainUpper>},
};

}  // namespace

const Filter* FindFilter(absl::string_view name) {
  for (const Filter& filter : kFilters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

}  // namespace penstock::jinja
