#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/text.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// (sep = None, maxsplit = -1), from the left and from the right: a list of the
// parts between separators, or of words. The parts know where they came from.
absl::StatusOr<Value> Split(const Text& text, const Invocation& call);
absl::StatusOr<Value> RightSplit(const Text& text, const Invocation& call);

}  // namespace penstock::jinja
