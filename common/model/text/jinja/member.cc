#include "common/model/text/jinja/member.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/methods.h"
#include "common/model/text/jinja/operators.h"

namespace penstock::jinja {
namespace {

Value Missing(absl::string_view name) {
  return Value(Undefined{absl::StrCat("'", name.substr(0, 64), "'")});
}

absl::optional<Value> LoopAttribute(const Loop& loop, absl::string_view name) {
  const auto length = static_cast<int64_t>(loop.items->items.size());
  const int64_t at = loop.index0;
  const auto item = [&](int64_t index) {
    if (index >= 0 && index < length) {
      return loop.items->items[static_cast<size_t>(index)];
    }
    return Value(Undefined{absl::StrCat("loop.", name)});
  };
  if (name == "index") return Value(at + 1);
  if (name == "index0") return Value(at);
  if (name == "first") return Value(at == 0);
  if (name == "last") return Value(at + 1 == length);
  if (name == "length") return Value(length);
  if (name == "revindex") return Value(length - at);
  if (name == "revindex0") return Value(length - at - 1);
  if (name == "previtem") return item(at - 1);
  if (name == "nextitem") return item(at + 1);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  return absl::nullopt;
}

Value NamesOf(const Macro& macro) {
  List names;
  names.kind = List::Kind::kTuple;
  for (const Macro::Parameter& parameter : macro.parameters) {
    names.items.push_back(TextValue(parameter.name));
  }
  return Value(std::move(names));
}

absl::optional<Value> MacroAttribute(const Macro& macro,
                                     absl::string_view name) {
  if (name == "name") return TextValue(macro.name);
  if (name == "arguments") return NamesOf(macro);
  if (name == "catch_kwargs") return Value(macro.takes_kwargs);
  if (name == "catch_varargs") return Value(macro.takes_varargs);
  if (name == "caller") return Value(macro.takes_caller);
  return absl::nullopt;
}

// What a value has beside items and methods.
absl::optional<Value> PlainAttribute(const Value& object,
                                     absl::string_view name) {
  if (const Namespace* space = object.space()) {
    const auto attribute = space->attributes.find(std::string(name));
    if (attribute != space->attributes.end()) return attribute->second;
  }
  if (const Loop* loop = object.loop()) return LoopAttribute(*loop, name);
  if (const Closure* closure = object.closure()) {
    return MacroAttribute(*closure->macro, name);
  }
  const List* list = object.list();
  if (list != nullptr && list->kind == List::Kind::kGroup) {
    if (name == "grouper") return list->items[0];
    if (name == "list") return list->items[1];
  }
  return absl::nullopt;
}

absl::Status CheckMember(const Value& object, absl::string_view name,
                         int line) {
  if (const Undefined* undefined = object.undefined()) {
    return Failure(line, absl::StrCat(undefined->what, " is undefined, so it ",
                                      "has no '", name, "'"));
  }
  if (absl::StartsWith(name, "__")) {
    return Failure(line, absl::StrCat("'", name, "' is not for templates"));
  }
  return absl::OkStatus();
}

Value PathPart(absl::string_view part) {
  int64_t number = 0;
  const bool numeric =
      !part.empty() &&
      part.find_first_not_of("0123456789") == absl::string_view::npos &&
      absl::SimpleAtoi(part, &number);
  return numeric ? Value(number) : TextValue(part);
}

}  // namespace

absl::StatusOr<Value> AttributeOf(const Value& object, absl::string_view name,
                                  Budget& budget, int line) {
  RETURN_IF_ERROR(CheckMember(object, name, line));
  if (absl::optional<Value> value = PlainAttribute(object, name)) {
    return *std::move(value);
  }
  if (HasPythonAttribute(object, name)) {
    return Unknown(line, absl::StrCat("method '", name, "' without a call"));
  }
  if (const Dict* dict = object.dict()) {
    RETURN_IF_ERROR(
        budget.TakeSteps(static_cast<int64_t>(dict->items.size()), line));
    if (const Value* item = dict->Find(name)) return *item;
  }
  return Missing(name);
}

absl::StatusOr<Value> ItemOf(const Value& object, const Value& index,
                             Budget& budget, int line) {
  ASSIGN_OR_RETURN(Value item, Subscript(object, index, budget, line));
  // Where there is no such item, Jinja tries an attribute of that name.
  if (item.undefined() != nullptr && index.text() != nullptr) {
    return AttributeOf(object, index.text()->bytes(), budget, line);
  }
  return item;
}

absl::StatusOr<Value> MemberAt(Value object, const Value& path,
                               const Value* otherwise, Budget& budget,
                               int line) {
  if (path.is_none()) return object;
  std::vector<Value> parts;
  if (const Text* text = path.text()) {
    RETURN_IF_ERROR(budget.TakeBytes(text->size(), line));
    for (const absl::string_view part : absl::StrSplit(text->bytes(), '.')) {
      parts.push_back(PathPart(part));
    }
  } else {
    parts.push_back(path);
  }
  for (const Value& part : parts) {
    RETURN_IF_ERROR(budget.TakeSteps(1, line));
    ASSIGN_OR_RETURN(object, ItemOf(object, part, budget, line));
    if (object.undefined() != nullptr && otherwise != nullptr &&
        !otherwise->is_none()) {
      object = *otherwise;
    }
  }
  return object;
}

}  // namespace penstock::jinja
