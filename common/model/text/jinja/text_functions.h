#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/text.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// What filters and methods of texts share; `call` gives the arguments. All keep
// where the text came from.

// (chars = None)
absl::StatusOr<Value> Trim(const Text& text, Side side, const Invocation& call);
// (old, new, count = -1)
absl::StatusOr<Value> Replace(const Text& text, const Invocation& call);
// `fill` (one character) on the other sides up to a width in characters; with
// kBoth the text is in the middle.
absl::StatusOr<Value> Padded(const Text& text, Side side, int64_t width,
                             const Text& fill, const Invocation& call);
// The lines of a text, as str.splitlines cuts them.
absl::StatusOr<std::vector<Text>> LinesOf(const Text& text, bool keep_ends,
                                          Budget& budget, int line);
// What stands between the items' texts is `glue`.
absl::StatusOr<Value> Join(const List& items, const Text& glue,
                           const Invocation& call);

}  // namespace penstock::jinja
