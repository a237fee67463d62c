// Filters of lists and of whatever else can be iterated over.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/operators.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/text/jinja/sorting.h"
#include "common/model/text/jinja/text_functions.h"
#include "common/model/utf8.h"

namespace penstock::jinja {
namespace {

absl::Status TakesNothing(const Invocation& call) {
  return call.Bind({}, 0).status();
}

bool IsTrue(const Value* argument) {
  return argument != nullptr && argument->Truthy();
}

absl::StatusOr<Value::ListPtr> ItemsOf(const Value& value,
                                       const Invocation& call) {
  return Iterated(value, call.budget, call.line);
}

absl::StatusOr<Value> Length(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  return LengthOf(value, call);
}

absl::StatusOr<Value> JoinItems(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"d", "attribute"}, 0));
  Text glue;
  if (bound[0] != nullptr) {
    ASSIGN_OR_RETURN(glue, Printed(*bound[0], call.budget, call.line));
  }
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  if (bound[1] == nullptr || bound[1]->is_none()) {
    return Join(*items, glue, call);
  }
  List members;
  for (const Value& item : items->items) {
    ASSIGN_OR_RETURN(
        members.items.emplace_back(),
        MemberAt(item, *bound[1], nullptr, call.budget, call.line));
  }
  return Join(members, glue, call);
}

absl::StatusOr<Value> First(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  const List* list = value.list();
  if (list != nullptr && list->kind == List::Kind::kGenerator) {
    if (list->taken < list->items.size()) return list->items[list->taken++];
    return Value(Undefined{"the first of no items"});
  }
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  if (items->items.empty()) return Value(Undefined{"the first of no items"});
  return items->items.front();
}

absl::StatusOr<Value> Last(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  const List* list = value.list();
  if (list != nullptr && list->kind == List::Kind::kGenerator) {
    return call.Fail("of a generator, which has no end to begin at");
  }
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  if (items->items.empty()) return Value(Undefined{"the last of no items"});
  return items->items.back();
}

absl::StatusOr<Value> ToList(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  return MakeList(List{items->items}, call.budget, call.line);
}

absl::StatusOr<Value> Reverse(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  if (value.text() != nullptr) {
    const Value back(int64_t{-1});
    return Sliced(value, {nullptr, nullptr, &back}, call.budget, call.line);
  }
  const List* list = value.list();
  const bool read = list != nullptr && list->kind == List::Kind::kGenerator;
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  std::vector<Value> reversed(items->items.rbegin(), items->items.rend());
  if (!read) {
    return MakeGenerator(std::move(reversed), call.budget, call.line);
  }
  return MakeList(List{std::move(reversed)}, call.budget, call.line);
}

// Adds the dictionary's pairs of key and value.
absl::Status AddPairs(const Dict& dict, const Invocation& call,
                      std::vector<Value>& pairs) {
  for (const auto& [key, value] : dict.items) {
    RETURN_IF_ERROR(call.budget.TakeBytes(key.size(), call.line));
    ASSIGN_OR_RETURN(pairs.emplace_back(),
                     MakeList({{Value(key), value}, List::Kind::kTuple},
                              call.budget, call.line));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Items(const Value& value, const Invocation& call) {
  RETURN_IF_ERROR(TakesNothing(call));
  std::vector<Value> pairs;
  if (value.undefined() == nullptr) {
    if (value.dict() == nullptr) return call.Fail("takes a dict");
    RETURN_IF_ERROR(AddPairs(*value.dict(), call, pairs));
  }
  return MakeGenerator(std::move(pairs), call.budget, call.line);
}

// The items in the order of their keys.
absl::StatusOr<Value> InOrder(const std::vector<Value>& items,
                              const std::vector<Value>& keys, bool reverse,
                              const Invocation& call) {
  ASSIGN_OR_RETURN(const std::vector<size_t> places,
                   SortedPlaces(keys, reverse, call));
  List sorted;
  for (const size_t place : places) sorted.items.push_back(items[place]);
  return MakeList(std::move(sorted), call.budget, call.line);
}

absl::StatusOr<Value> Sort(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"reverse", "case_sensitive", "attribute"}, 0));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  std::vector<Value> attributes;
  if (bound[2] == nullptr || bound[2]->text() == nullptr) {
    attributes.push_back(bound[2] == nullptr ? Value() : *bound[2]);
  } else {
    for (const absl::string_view part :
         absl::StrSplit(bound[2]->text()->bytes(), ',')) {
      attributes.push_back(TextValue(part));
    }
  }
  std::vector<Value> keys;
  for (const Value& item : items->items) {
    List key;
    for (const Value& attribute : attributes) {
      ASSIGN_OR_RETURN(key.items.emplace_back(),
                       KeyOf(item, &attribute, IsTrue(bound[1]), call));
    }
    ASSIGN_OR_RETURN(keys.emplace_back(),
                     MakeList(std::move(key), call.budget, call.line));
  }
  return InOrder(items->items, keys, IsTrue(bound[0]), call);
}

absl::StatusOr<Value> DictSort(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"case_sensitive", "by", "reverse"}, 0));
  ASSIGN_OR_RETURN(const Text by, TextArgument(call, bound[1], "key"));
  if (by.bytes() != "key" && by.bytes() != "value") {
    return call.Fail("sorts by key or value");
  }
  if (value.dict() == nullptr) return call.Fail("takes a dict");
  std::vector<Value> pairs;
  RETURN_IF_ERROR(AddPairs(*value.dict(), call, pairs));
  std::vector<Value> keys;
  for (const Value& pair : pairs) {
    const Value& item = pair.list()->items[by.bytes() == "key" ? 0 : 1];
    ASSIGN_OR_RETURN(keys.emplace_back(),
                     KeyOf(item, nullptr, IsTrue(bound[0]), call));
  }
  return InOrder(pairs, keys, IsTrue(bound[2]), call);
}

absl::StatusOr<Value> Unique(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"case_sensitive", "attribute"}, 0));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  std::vector<Value> seen;
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    ASSIGN_OR_RETURN(const Value key,
                     KeyOf(item, bound[1], IsTrue(bound[0]), call));
    RETURN_IF_ERROR(CheckHashable(key, call.line));
    bool fresh = true;
    for (const Value& other : seen) {
      ASSIGN_OR_RETURN(const bool equal,
                       Equal(key, other, call.budget, call.line));
      fresh = fresh && !equal;
      if (equal) break;
    }
    if (!fresh) continue;
    seen.push_back(key);
    kept.push_back(item);
  }
  return MakeGenerator(std::move(kept), call.budget, call.line);
}

template <Comparison kBetter>
absl::StatusOr<Value> Extreme(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"case_sensitive", "attribute"}, 0));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  if (items->items.empty()) return Value(Undefined{"the best of no items"});
  size_t best = 0;
  ASSIGN_OR_RETURN(Value best_key,
                   KeyOf(items->items[0], bound[1], IsTrue(bound[0]), call));
  for (size_t i = 1; i < items->items.size(); ++i) {
    ASSIGN_OR_RETURN(Value key,
                     KeyOf(items->items[i], bound[1], IsTrue(bound[0]), call));
    ASSIGN_OR_RETURN(const bool better,
                     Compare(kBetter, key, best_key, call.budget, call.line));
    if (!better) continue;
    best = i;
    best_key = std::move(key);
  }
  return items->items[best];
}

absl::StatusOr<Value> GroupBy(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound,
                   call.Bind({"attribute", "default", "case_sensitive"}, 1));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  // What an item is shown by.
  const auto shown = [&](const Value& item) {
    return MemberAt(item, *bound[0], bound[1], call.budget, call.line);
  };
  std::vector<Value> keys;
  for (const Value& item : items->items) {
    ASSIGN_OR_RETURN(const Value key, shown(item));
    ASSIGN_OR_RETURN(keys.emplace_back(),
                     KeyOf(key, nullptr, IsTrue(bound[2]), call));
  }
  ASSIGN_OR_RETURN(const std::vector<size_t> places,
                   SortedPlaces(keys, false, call));
  List groups;
  for (size_t begin = 0; begin < places.size();) {
    size_t end = begin;
    List members;
    for (bool same = true; same;) {
      members.items.push_back(items->items[places[end++]]);
      if (end == places.size()) break;
      ASSIGN_OR_RETURN(same, Equal(keys[places[begin]], keys[places[end]],
                                   call.budget, call.line));
    }
    ASSIGN_OR_RETURN(Value grouper, shown(members.items[0]));
    ASSIGN_OR_RETURN(Value list,
                     MakeList(std::move(members), call.budget, call.line));
    ASSIGN_OR_RETURN(
        groups.items.emplace_back(),
        MakeList({{std::move(grouper), std::move(list)}, List::Kind::kGroup},
                 call.budget, call.line));
    begin = end;
  }
  return MakeList(std::move(groups), call.budget, call.line);
}

absl::StatusOr<Value> Batch(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"linecount", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const int64_t size, IntegerArgument(call, bound[0], 0));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  std::vector<Value> batches;
  List batch;
  const auto close = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(batches.emplace_back(), MakeList(std::exchange(batch, {}),
                                                      call.budget, call.line));
    return absl::OkStatus();
  };
  for (const Value& item : items->items) {
    if (static_cast<int64_t>(batch.items.size()) == size) {
      RETURN_IF_ERROR(close());
    }
    batch.items.push_back(item);
  }
  if (!batch.items.empty()) {
    const bool fill = bound[1] != nullptr && !bound[1]->is_none();
    while (fill && static_cast<int64_t>(batch.items.size()) < size) {
      RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
      RETURN_IF_ERROR(call.budget.TakeBytes(sizeof(Value), call.line));
      batch.items.push_back(*bound[1]);
    }
    RETURN_IF_ERROR(close());
  }
  return MakeGenerator(std::move(batches), call.budget, call.line);
}

absl::StatusOr<Value> Slices(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"slices", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const int64_t count, IntegerArgument(call, bound[0], 0));
  ASSIGN_OR_RETURN(const Value::ListPtr items, ItemsOf(value, call));
  if (count == 0) return call.Fail("into no slices");
  const auto size = static_cast<int64_t>(items->items.size());
  const bool fill = bound[1] != nullptr && !bound[1]->is_none();
  std::vector<Value> slices;
  auto at = items->items.begin();
  for (int64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
    const int64_t length = size / count + (i < size % count ? 1 : 0);
    List slice;
    slice.items.assign(at, at + length);
    at += length;
    if (fill && i >= size % count) slice.items.push_back(*bound[1]);
    ASSIGN_OR_RETURN(slices.emplace_back(),
                     MakeList(std::move(slice), call.budget, call.line));
  }
  return MakeGenerator(std::move(slices), call.budget, call.line);
}

constexpr Filter kFilters[] = {
    {"batch", Batch},
    {"count", Length},
    {"dictsort", DictSort},
    {"first", First},
    {"groupby", GroupBy},
    {"items", Items},
    {"join", JoinItems},
    {"last", Last},
    {"length", Length},
    {"list", ToList},
    {"max", Extreme<Comparison::kGreater>},
    {"min", Extreme<Comparison::kLess>},
    {"reverse", Reverse},
    {"slice", Slices},
    {"sort", Sort},
    {"unique", Unique},
};

}  // namespace

absl::Span<const Filter> SequenceFilters() { return kFilters; }

}  // namespace penstock::jinja
