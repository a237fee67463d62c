#include "common/model/text/jinja/invocation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

// How deep a value with this item is nested.
absl::StatusOr<int> DepthWith(const Value& item, int line) {
  if (!item.is_data()) {
    return Unknown(
        line, absl::StrCat("a ", item.type_name(), " inside another value"));
  }
  if (item.depth() >= kMaxDataDepth) {
    return Exhausted(
        line, absl::StrCat("a value nested deeper than ", kMaxDataDepth));
  }
  return item.depth() + 1;
}

std::vector<Value> Characters(const Text& text) {
  std::vector<Value> characters;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = at + Utf8Length(text.bytes(), at);
    characters.emplace_back(text.Slice(at, end));
    at = end;
  }
  return characters;
}

}  // namespace

absl::StatusOr<std::vector<const Value*>> Invocation::Bind(
    absl::Span<const absl::string_view> parameters, size_t required) const {
  if (arguments.positional.size() > parameters.size()) {
    return Fail(
        absl::StrCat("takes at most ", parameters.size(), " arguments"));
  }
  std::vector<const Value*> bound(parameters.size(), nullptr);
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound[i] = &arguments.positional[i];
  }
  for (const auto& [parameter, value] : arguments.named) {
    const auto at = std::find(parameters.begin(), parameters.end(), parameter);
    if (at == parameters.end()) {
      return Unknown(line,
                     absl::StrCat("argument '", parameter, "' of ", name));
    }
    const Value*& slot = bound[at - parameters.begin()];
    if (slot != nullptr) {
      return Fail(absl::StrCat("is given '", parameter, "' twice"));
    }
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound[i] == nullptr) {
      return Fail(absl::StrCat("needs '", parameters[i], "'"));
    }
  }
  return bound;
}

absl::Status Invocation::Fail(absl::string_view what) const {
  return Failure(line, absl::StrCat(name, " ", what));
}

absl::StatusOr<Text> TextArgument(const Invocation& call, const Value* argument,
                                  absl::string_view otherwise) {
  if (argument == nullptr || argument->is_none()) {
    return Text(otherwise, false);
  }
  if (argument->text() != nullptr) return *argument->text();
  return call.Fail(absl::StrCat("takes a str, not a ", argument->type_name()));
}

absl::StatusOr<int64_t> IntegerArgument(const Invocation& call,
                                        const Value* argument,
                                        int64_t otherwise) {
  if (argument == nullptr || argument->is_none()) return otherwise;
  if (const int64_t* integer = argument->AsInteger()) return *integer;
  return call.Fail(absl::StrCat("takes an int, not a ", argument->type_name()));
}

absl::StatusOr<Value::ListPtr> Iterated(const Value& value, Budget& budget,
                                        int line) {
  if (const List* items = value.list()) {
    if (items->kind != List::Kind::kGenerator) return value.shared_list();
    const size_t taken = std::exchange(items->taken, items->items.size());
    if (taken == 0) return value.shared_list();
    auto rest = std::make_shared<List>();
    rest->items.assign(items->items.begin() + static_cast<ptrdiff_t>(taken),
                       items->items.end());
    rest->depth = items->depth;
    return rest;
  }
  auto list = std::make_shared<List>();
  if (const Dict* dict = value.dict()) {
    RETURN_IF_ERROR(budget.TakeBytes(dict->items.size() * sizeof(Value), line));
    for (const auto& [key, item] : dict->items) {
      RETURN_IF_ERROR(budget.TakeBytes(key.size(), line));
      list->items.emplace_back(key);
    }
  } else if (const Text* text = value.text()) {
    RETURN_IF_ERROR(budget.TakeBytes(
        CountUtf8(text->bytes()) * (sizeof(Value) + sizeof(Text)), line));
    list->items = Characters(*text);
  } else if (value.undefined() == nullptr) {
    return Failure(line, absl::StrCat("a ", value.type_name(),
                                      " cannot be iterated over"));
  }
  return list;
}

absl::StatusOr<Value> LengthOf(const Value& value, const Invocation& call) {
  const auto size = [](size_t count) {
    return Value(static_cast<int64_t>(count));
  };
  if (const Text* text = value.text()) {
    RETURN_IF_ERROR(call.budget.TakeBytes(text->size(), call.line));
    return size(CountUtf8(text->bytes()));
  }
  const List* list = value.list();
  if (list != nullptr && list->kind != List::Kind::kGenerator) {
    return size(list->items.size());
  }
  if (const Dict* dict = value.dict()) return size(dict->items.size());
  if (value.undefined() != nullptr) return size(0);
  if (const Loop* loop = value.loop()) return size(loop->items->items.size());
  return call.Fail(absl::StrCat("of a ", value.type_name()));
}

absl::StatusOr<Value> MakeList(List list, Budget& budget, int line) {
  RETURN_IF_ERROR(budget.TakeBytes(list.items.size() * sizeof(Value), line));
  for (const Value& item : list.items) {
    ASSIGN_OR_RETURN(const int depth, DepthWith(item, line));
    list.depth = std::max(list.depth, depth);
  }
  return Value(std::move(list));
}

absl::StatusOr<Value> MakeGenerator(std::vector<Value> items, Budget& budget,
                                    int line) {
  List list;
  list.items = std::move(items);
  list.kind = List::Kind::kGenerator;
  return MakeList(std::move(list), budget, line);
}

absl::StatusOr<Value> MakeDict(Dict dict, Budget& budget, int line) {
  RETURN_IF_ERROR(budget.TakeBytes(dict.items.size() * sizeof(Value), line));
  for (const auto& [key, item] : dict.items) {
    RETURN_IF_ERROR(budget.TakeBytes(key.size(), line));
    ASSIGN_OR_RETURN(const int depth, DepthWith(item, line));
    dict.depth = std::max(dict.depth, depth);
  }
  return Value(std::move(dict));
}

absl::Status CheckHashable(const Value& value, int line) {
  const List* list = value.list();
  const bool hashable = value.dict() == nullptr && value.space() == nullptr &&
                        (list == nullptr || list->kind != List::Kind::kList);
  if (!hashable) {
    return Failure(line, absl::StrCat("a ", value.type_name(), " as a key"));
  }
  if (list == nullptr || !list->is_tuple()) return absl::OkStatus();
  for (const Value& item : list->items) {
    RETURN_IF_ERROR(CheckHashable(item, line));
  }
  return absl::OkStatus();
}

absl::Status TakeSearch(absl::string_view text, absl::string_view needle,
                        Budget& budget, int line) {
  // A search compares up to the needle's length at each place.
  const size_t rounds = 1 + needle.size() / 256;
  if (text.size() > (size_t{1} << 40) / rounds) {
    return Exhausted(line, "searches too much text");
  }
  return budget.TakeBytes(text.size() * rounds, line);
}

}  // namespace penstock::jinja
