#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// `value is name(...)`. A new test is a function and a row in tests.cc.
struct Test {
  absl::string_view name;
  absl::StatusOr<bool> (*holds)(const Value& value, const Invocation& call);
};

// Null when this build does not know the test.
const Test* FindTest(absl::string_view name);

}  // namespace penstock::jinja
