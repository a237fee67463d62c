#include "common/model/text/jinja/functions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"
#include "common/model/text/jinja/printer.h"
#include "common/model/text/jinja/strftime.h"

namespace penstock::jinja {
namespace {

// As the templates' own library has it.
constexpr size_t kMaxRange = 100000;

absl::StatusOr<Value> RaiseException(const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"message"}, 1));
  ASSIGN_OR_RETURN(const Text message,
                   Printed(*bound[0], call.budget, call.line));
  return Failure(call.line, absl::StrCat("refused: ", message.bytes()));
}

// The items of an optional dict, then the named arguments.
absl::StatusOr<Dict> DictOf(const Invocation& call) {
  const std::vector<Value>& positional = call.arguments.positional;
  if (positional.size() > 1) return call.Fail("takes one value at most");
  Dict dict;
  if (!positional.empty()) {
    if (positional[0].dict() == nullptr) {
      return Unknown(call.line, absl::StrCat(call.name, " of a ",
                                             positional[0].type_name()));
    }
    dict = *positional[0].dict();
  }
  for (const auto& [name, value] : call.arguments.named) {
    RETURN_IF_ERROR(call.budget.TakeSteps(
        static_cast<int64_t>(dict.items.size()), call.line));
    dict.Put(Text(name, false), value);
  }
  return dict;
}

absl::StatusOr<Value> MakeDictionary(const Invocation& call) {
  ASSIGN_OR_RETURN(Dict dict, DictOf(call));
  return MakeDict(std::move(dict), call.budget, call.line);
}

absl::StatusOr<Value> MakeNamespace(const Invocation& call) {
  ASSIGN_OR_RETURN(const Dict dict, DictOf(call));
  auto space = std::make_shared<Namespace>();
  for (const auto& [name, value] : dict.items) {
    if (absl::StartsWith(name.bytes(), "_")) {
      return call.Fail("takes no name that begins with '_'");
    }
    if (!value.is_data()) {
      return Unknown(call.line, absl::StrCat("a ", value.type_name(),
                                             " inside a namespace"));
    }
    space->attributes[std::string(name.bytes())] = value;
  }
  return Value(std::move(space));
}

absl::StatusOr<Value> MakeRange(const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"start", "stop", "step"}, 1));
  for (const Value* value : bound) {
    if (value != nullptr && value->AsInteger() == nullptr) {
      return call.Fail(absl::StrCat("takes ints, not a ", value->type_name()));
    }
  }
  const bool alone = bound[1] == nullptr;
  int64_t at = alone ? 0 : *bound[0]->AsInteger();
  const int64_t stop = *bound[alone ? 0 : 1]->AsInteger();
  ASSIGN_OR_RETURN(const int64_t step, IntegerArgument(call, bound[2], 1));
  if (step == 0) return call.Fail("has a step of zero");
  List list;
  list.kind = List::Kind::kRange;
  while (step > 0 ? at < stop : at > stop) {
    RETURN_IF_ERROR(call.budget.TakeSteps(1, call.line));
    RETURN_IF_ERROR(call.budget.TakeBytes(sizeof(Value), call.line));
    if (list.items.size() == kMaxRange) {
      return call.Fail(absl::StrCat("has more than ", kMaxRange, " items"));
    }
    list.items.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return Value(std::move(list));
}

constexpr absl::string_view kNow = "strftime_now";

absl::StatusOr<Value> StrftimeNow(const Invocation& call) {
  ASSIGN_OR_RETURN(const auto bound, call.Bind({"format"}, 1));
  if (bound[0]->text() == nullptr) {
    return call.Fail(
        absl::StrCat("takes a str, not a ", bound[0]->type_name()));
  }
  return Strftime(*bound[0]->text(), call);
}

constexpr BuiltinFunction kFunctions[] = {
    {"dict", MakeDictionary},
    {"namespace", MakeNamespace},
    {"raise_exception", RaiseException},
    {"range", MakeRange},
    {kNow, StrftimeNow},
};

}  // namespace

const BuiltinFunction* FindFunction(absl::string_view name,
                                    const World& world) {
  if (name == kNow && !world.now.has_value()) return nullptr;
  for (const BuiltinFunction& function : kFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace penstock::jinja
