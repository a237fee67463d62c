#include "common/model/text/jinja/methods.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/operators.h"

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

constexpr absl::string_view kTupleAttributes[] = {"count", "index"};
constexpr absl::string_view kChangesList[] = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
constexpr absl::string_view kChangesDict[] = {"clear", "pop", "popitem",
                                              "setdefault", "update"};

absl::StatusOr<Value> Get(const Value& object, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"key", "default"}, 1));
  RETURN_IF_ERROR(call.budget.TakeSteps(
      static_cast<int64_t>(object.dict()->items.size()), call.line));
  RETURN_IF_ERROR(CheckHashable(*bound[0], call.line));
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

// Whether the values are others than those of the call before.
absl::StatusOr<Value> Changed(const Value& object, const Invocation& call) {
  if (!call.arguments.named.empty()) return call.Fail("takes values");
  Loop& loop = *object.loop();
  ASSIGN_OR_RETURN(const Value asked,
                   MakeList({call.arguments.positional, List::Kind::kTuple},
                            call.budget, call.line));
  bool same = false;
  if (loop.asked != nullptr) {
    ASSIGN_OR_RETURN(same,
                     Equal(asked, Value(loop.asked), call.budget, call.line));
  }
  loop.asked = asked.shared_list();
  return Value(!same);
}

absl::StatusOr<Value> Copy(const Value& object, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  return object;
}

absl::StatusOr<Value> CountItems(const Value& object, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"value"}, 1));
  int64_t count = 0;
  for (const Value& item : object.list()->items) {
    ASSIGN_OR_RETURN(const bool equal,
                     Equal(item, *bound[0], call.budget, call.line));
    count += equal ? 1 : 0;
  }
  return Value(count);
}

absl::StatusOr<Value> IndexOfItem(const Value& object, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"value"}, 1));
  const std::vector<Value>& items = object.list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool equal,
                     Equal(items[i], *bound[0], call.budget, call.line));
    if (equal) return Value(static_cast<int64_t>(i));
  }
  return call.Fail("does not find it");
}

enum class Part { kKeys, kValues, kItems };

template <Part kPart>
absl::StatusOr<Value> Parts(const Value& object, const Invocation& call) {
  RETURN_IF_ERROR(call.Bind({}, 0).status());
  List parts;
  parts.kind = kPart == Part::kKeys     ? List::Kind::kKeys
               : kPart == Part::kValues ? List::Kind::kValues
                                        : List::Kind::kItems;
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
      ASSIGN_OR_RETURN(part,
                       MakeList({{std::move(part), value}, List::Kind::kTuple},
                                call.budget, call.line));
    }
    parts.items.push_back(std::move(part));
  }
  return MakeList(std::move(parts), call.budget, call.line);
}

constexpr MethodRow kDictMethods[] = {
    {"copy", Copy},
    {"get", Get},
    {"items", Parts<Part::kItems>},
    {"keys", Parts<Part::kKeys>},
    {"values", Parts<Part::kValues>},
};

constexpr MethodRow kListMethods[] = {
    {"copy", Copy},
    {"count", CountItems},
    {"index", IndexOfItem},
};

constexpr MethodRow kLoopMethods[] = {
    {"changed", Changed},
    {"cycle", Cycle},
};

}  // namespace

Method FindMethod(const Value& object, absl::string_view name) {
  absl::Span<const MethodRow> rows;
  if (object.text() != nullptr) rows = TextMethods();
  if (object.dict() != nullptr) rows = kDictMethods;
  if (object.list() != nullptr) rows = kListMethods;
  if (object.loop() != nullptr) rows = kLoopMethods;
  if (object.list() != nullptr && !HasPythonAttribute(object, name)) {
    return nullptr;
  }
  for (const MethodRow& row : rows) {
    if (row.name == name) return row.method;
  }
  return nullptr;
}

bool HasPythonAttribute(const Value& object, absl::string_view name) {
  absl::Span<const absl::string_view> names;
  if (object.text() != nullptr) names = kTextAttributes;
  if (object.dict() != nullptr) names = kDictAttributes;
  if (const List* list = object.list()) {
    if (list->kind == List::Kind::kList) names = kListAttributes;
    if (list->is_tuple() || list->kind == List::Kind::kRange) {
      names = kTupleAttributes;
    }
  }
  return absl::c_linear_search(names, name);
}

bool ChangesData(const Value& object, absl::string_view name) {
  if (object.dict() != nullptr) {
    return absl::c_linear_search(kChangesDict, name);
  }
  return object.list() != nullptr && object.list()->kind == List::Kind::kList &&
         absl::c_linear_search(kChangesList, name);
}

}  // namespace penstock::jinja
