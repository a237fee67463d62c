#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/text.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// What filters and methods of texts share; `call` gives the arguments. All keep
// where the text came from.

// (chars = None)
absl::StatusOr<Value> Trim(const Text& text, Side side, const Invocation& call);
// Only of ASCII: UNIMPLEMENTED beyond it, where a wrong letter would be worse.
absl::StatusOr<Value> Upper(const Text& text, const Invocation& call);
absl::StatusOr<Value> Lower(const Text& text, const Invocation& call);
absl::StatusOr<Value> Capitalize(const Text& text, const Invocation& call);
// (old, new, count = -1)
absl::StatusOr<Value> Replace(const Text& text, const Invocation& call);
// (sep = None, maxsplit = -1)
absl::StatusOr<Value> Split(const Text& text, const Invocation& call);
// What stands between the items' texts is `glue`.
absl::StatusOr<Value> Join(const List& items, const Text& glue,
                           const Invocation& call);

}  // namespace penstock::jinja
