#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// Members of values as the template's environment finds them; Undefined where
// there is none. INVALID_ARGUMENT for a member of Undefined and for Python's
// internals.

// `object.name`: an attribute, else the item of that name.
absl::StatusOr<Value> AttributeOf(const Value& object, absl::string_view name,
                                  Budget& budget, int line);

// `object[index]`: an item, else the attribute of that name.
absl::StatusOr<Value> ItemOf(const Value& object, const Value& index,
                             Budget& budget, int line);

// What filters call an attribute: a number, or names and numbers with dots
// between. Where one of them is not there, `otherwise` goes on for it, unless
// that is null or none.
absl::StatusOr<Value> MemberAt(Value object, const Value& path,
                               const Value* otherwise, Budget& budget,
                               int line);

}  // namespace penstock::jinja
