#include "common/model/text/jinja/macro_arguments.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/error.h"

namespace penstock::jinja {
namespace {

constexpr char kCaller[] = "caller";

class Binder {
 public:
  Binder(const Macro& macro, Arguments arguments, Budget& budget, int line)
      : macro_(macro),
        arguments_(std::move(arguments)),
        budget_(budget),
        line_(line) {}

  absl::StatusOr<BoundArguments> Run() {
    RETURN_IF_ERROR(CheckNamesDiffer());
    BindParameters();
    if (macro_.takes_caller && !caller_found_) {
      absl::optional<Value> caller = Take(kCaller);
      if (!caller.has_value() || caller->is_none()) {
        caller = Value(Undefined{"'caller'"});
      }
      bound_.given.emplace_back(kCaller, *std::move(caller));
    }
    RETURN_IF_ERROR(BindNamedRest());
    RETURN_IF_ERROR(BindRest());
    return std::move(bound_);
  }

 private:
  absl::Status Fail(absl::string_view what) const {
    return Failure(line_, absl::StrCat("macro '", macro_.name, "' ", what));
  }

  absl::Status CheckNamesDiffer() const {
    std::set<absl::string_view> names;
    for (const auto& [name, value] : arguments_.named) {
      if (!names.insert(name).second) {
        return Fail(absl::StrCat("is given '", name, "' twice"));
      }
    }
    return absl::OkStatus();
  }

  // A named argument, which is then no longer there.
  absl::optional<Value> Take(absl::string_view name) {
    auto& named = arguments_.named;
    const auto found =
        std::find_if(named.begin(), named.end(),
                     [&](const auto& row) { return row.first == name; });
    if (found == named.end()) return absl::nullopt;
    Value value = std::move(found->second);
    named.erase(found);
    return value;
  }

  void BindParameters() {
    const size_t count = macro_.parameters.size();
    size_t at = 0;
    for (; at < count && at < arguments_.positional.size(); ++at) {
      bound_.given.emplace_back(macro_.parameters[at].name,
                                std::move(arguments_.positional[at]));
    }
    if (at == count) caller_found_ = macro_.has_caller_parameter;
    for (; at < count; ++at) {
      const Macro::Parameter& parameter = macro_.parameters[at];
      if (parameter.name == kCaller) caller_found_ = true;
      absl::optional<Value> value = Take(parameter.name);
      if (value.has_value()) {
        bound_.given.emplace_back(parameter.name, *std::move(value));
      } else {
        bound_.missing.push_back(&parameter);
      }
    }
  }

  absl::Status BindNamedRest() {
    if (!macro_.takes_kwargs) {
      if (arguments_.named.empty()) return absl::OkStatus();
      return Fail(absl::StrCat("takes no argument '",
                               arguments_.named.front().first, "'"));
    }
    Dict rest;
    for (auto& [name, value] : arguments_.named) {
      rest.items.emplace_back(Text(name, false), std::move(value));
    }
    ASSIGN_OR_RETURN(Value value, MakeDict(std::move(rest), budget_, line_));
    bound_.given.emplace_back("kwargs", std::move(value));
    return absl::OkStatus();
  }

  absl::Status BindRest() {
    const size_t count = macro_.parameters.size();
    List rest;
    rest.kind = List::Kind::kTuple;
    if (arguments_.positional.size() > count) {
      rest.items.assign(arguments_.positional.begin() + count,
                        arguments_.positional.end());
    }
    if (!macro_.takes_varargs) {
      if (rest.items.empty()) return absl::OkStatus();
      return Fail(absl::StrCat("takes at most ", count, " arguments"));
    }
    ASSIGN_OR_RETURN(Value value, MakeList(std::move(rest), budget_, line_));
    bound_.given.emplace_back("varargs", std::move(value));
    return absl::OkStatus();
  }

  const Macro& macro_;
  Arguments arguments_;
  Budget& budget_;
  const int line_;
  bool caller_found_ = false;
  BoundArguments bound_;
};

}  // namespace

absl::StatusOr<BoundArguments> BindMacro(const Macro& macro,
                                         Arguments arguments, Budget& budget,
                                         int line) {
  return Binder(macro, std::move(arguments), budget, line).Run();
}

}  // namespace penstock::jinja
