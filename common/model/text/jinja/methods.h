#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// `object.name(...)`. A new method is a function and a row: of texts in
// text_methods.cc, of others in methods.cc.
using Method = absl::StatusOr<Value> (*)(const Value& object,
                                         const Invocation& call);
struct MethodRow {
  absl::string_view name;
  Method method;
};

// Null when this build does not know the method for values of that type.
Method FindMethod(const Value& object, absl::string_view name);

// Whether Python's type of the value has an attribute of that name, which then
// hides an item of the same name.
bool HasPythonAttribute(const Value& object, absl::string_view name);

// Whether it is a method that changes a list or dict, which templates may not.
bool ChangesData(const Value& object, absl::string_view name);

// The methods of texts, for FindMethod.
absl::Span<const MethodRow> TextMethods();

}  // namespace penstock::jinja
