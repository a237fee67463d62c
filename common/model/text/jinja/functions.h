#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// A function of every template's world, e.g. raise_exception. A new one is a
// function and a row in functions.cc.
struct BuiltinFunction {
  absl::string_view name;
  absl::StatusOr<Value> (*call)(const Invocation& call);
};

// Null when there is none of that name; strftime_now is there only in a world
// that knows the time.
const BuiltinFunction* FindFunction(absl::string_view name, const World& world);

}  // namespace penstock::jinja
