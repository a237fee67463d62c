#include "common/model/text/jinja/filters.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/json.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/methods.h"

namespace penstock::jinja {
namespace {

absl::StatusOr<Value> Default(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"default_value", "boolean"}, 0));
  const bool falsy = bound[1] != nullptr && bound[1]->Truthy();
  if (value.undefined() == nullptr && !(falsy && !value.Truthy())) {
    return value;
  }
  return bound[0] == nullptr ? TextValue("") : *bound[0];
}

// An attribute, never an item.
absl::StatusOr<Value> AttributeNamed(const Value& value,
                                     const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"name"}, 1));
  if (bound[0]->text() == nullptr) return call.Fail("takes a str");
  const absl::string_view name = bound[0]->text()->bytes();
  if (value.dict() != nullptr && !HasPythonAttribute(value, name)) {
    return Value(Undefined{absl::StrCat("'", name.substr(0, 64), "'")});
  }
  return AttributeOf(value, name, call.budget, call.line);
}

absl::StatusOr<JsonStyle> StyleOf(const Invocation& call) {
  ASSIGN_OR_RETURN(
      const auto bound,
      call.Bind({"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  JsonStyle style;
  style.ascii = bound[0] != nullptr && bound[0]->Truthy();
  style.sorted = bound[3] != nullptr && bound[3]->Truthy();
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    style.item_separator.assign(1, ',');
    if (const Text* text = bound[1]->text()) {
      style.indent = std::string(text->bytes());
    } else {
      ASSIGN_OR_RETURN(const int64_t spaces,
                       IntegerArgument(call, bound[1], 0));
      if (spaces > kMaxJsonIndent) {
        return Unknown(call.line, absl::StrCat("an indent of ", spaces));
      }
      style.indent = std::string(spaces < 0 ? 0 : spaces, ' ');
    }
  }
  if (bound[2] == nullptr || bound[2]->is_none()) return style;
  const List* pair = bound[2]->list();
  if (pair == nullptr || pair->items.size() != 2 ||
      pair->items[0].text() == nullptr || pair->items[1].text() == nullptr) {
    return call.Fail("takes two strs as separators");
  }
  style.item_separator = std::string(pair->items[0].text()->bytes());
  style.key_separator = std::string(pair->items[1].text()->bytes());
  return style;
}

absl::StatusOr<Value> Json(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const JsonStyle style, StyleOf(call));
  ASSIGN_OR_RETURN(Text text, ToJson(value, style, call.budget, call.line));
  return Value(std::move(text));
}

constexpr Filter kFilters[] = {
    {"attr", AttributeNamed},
    {"d", Default},
    {"default", Default},
    {"tojson", Json},
};

}  // namespace

const Filter* FindFilter(absl::string_view name) {
  for (const absl::Span<const Filter> filters :
       {absl::MakeConstSpan(kFilters), NumberFilters(), SelectionFilters(),
        SequenceFilters(), TextFilters()}) {
    for (const Filter& filter : filters) {
      if (filter.name == name) return &filter;
    }
  }
  return nullptr;
}

}  // namespace penstock::jinja
