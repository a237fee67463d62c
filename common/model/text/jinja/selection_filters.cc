// Filters that call a filter or test by its name for each item.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/filters.h"
#include "common/model/text/jinja/member.h"
#include "common/model/text/jinja/tests.h"

namespace penstock::jinja {
namespace {

// The call's own arguments but the first `count`.
Arguments Rest(const Arguments& arguments, size_t count) {
  Arguments rest;
  rest.positional.assign(
      arguments.positional.begin() + static_cast<ptrdiff_t>(count),
      arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

absl::StatusOr<absl::string_view> NameAt(const Invocation& call, size_t place) {
  const Text* name = call.arguments.positional[place].text();
  if (name == nullptr) return call.Fail("takes the name of a filter or test");
  return name->bytes();
}

// `map(attribute=..., default=...)`
absl::StatusOr<Value> MapAttribute(const Value& value, const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"attribute", "default"}, 1));
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    ASSIGN_OR_RETURN(mapped.emplace_back(), MemberAt(item, *bound[0], bound[1],
                                                     call.budget, call.line));
  }
  return MakeGenerator(std::move(mapped), call.budget, call.line);
}

absl::StatusOr<Value> Map(const Value& value, const Invocation& call) {
  if (!value.Truthy()) return MakeGenerator({}, call.budget, call.line);
  if (call.arguments.positional.empty()) {
    for (const auto& [name, argument] : call.arguments.named) {
      if (name == "attribute") return MapAttribute(value, call);
    }
    return call.Fail("needs the name of a filter");
  }
  ASSIGN_OR_RETURN(const absl::string_view name, NameAt(call, 0));
  const Filter* filter = FindFilter(name);
  if (filter == nullptr) {
    return Unknown(call.line, absl::StrCat("filter '", name, "'"));
  }
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  // A filter that maps through filters that map ends somewhere.
  const Budget::Level level(call.budget);
  RETURN_IF_ERROR(level.Check(call.line));
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
    ASSIGN_OR_RETURN(
        mapped.emplace_back(),
        filter->apply(item, {filter->name, call.line, call.budget, call.world,
                             Rest(call.arguments, 1)}));
  }
  return MakeGenerator(std::move(mapped), call.budget, call.line);
}

// Keeps the items for which the test holds, or does not; the test is on an
// attribute when that is the first argument.
template <bool kKeep, bool kAttribute>
absl::StatusOr<Value> Select(const Value& value, const Invocation& call) {
  if (!value.Truthy()) return MakeGenerator({}, call.budget, call.line);
  constexpr size_t kTestAt = kAttribute ? 1 : 0;
  const auto& positional = call.arguments.positional;
  if (kAttribute && positional.empty()) return call.Fail("needs an attribute");
  const Test* test = nullptr;
  if (positional.size() > kTestAt) {
    ASSIGN_OR_RETURN(const absl::string_view name, NameAt(call, kTestAt));
    test = FindTest(name);
    if (test == nullptr) {
      return Unknown(call.line, absl::StrCat("test '", name, "'"));
    }
  }
  ASSIGN_OR_RETURN(const Value::ListPtr items,
                   Iterated(value, call.budget, call.line));
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
    Value tested = item;
    if (kAttribute) {
      ASSIGN_OR_RETURN(tested, MemberAt(item, positional[0], nullptr,
                                        call.budget, call.line));
    }
    bool holds = tested.Truthy();
    if (test != nullptr) {
      ASSIGN_OR_RETURN(
          holds,
          test->holds(tested, {test->name, call.line, call.budget, call.world,
                               Rest(call.arguments, kTestAt + 1)}));
    }
    if (holds == kKeep) kept.push_back(item);
  }
  return MakeGenerator(std::move(kept), call.budget, call.line);
}

constexpr Filter kFilters[] = {
    {"map", Map},
    {"reject", Select<false, false>},
    {"rejectattr", Select<false, true>},
    {"select", Select<true, false>},
    {"selectattr", Select<true, true>},
};

}  // namespace

absl::Span<const Filter> SelectionFilters() { return kFilters; }

}  // namespace penstock::jinja
