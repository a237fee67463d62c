#pragma once

#include "absl/status/statusor.h"
#include "common/model/text/jinja/invocation.h"
#include "common/model/text/jinja/text.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// Letters changed to upper or lower case, as Python's methods of str do. All
// keep where the text came from; the call's arguments are not looked at.
absl::StatusOr<Value> Upper(const Text& text, const Invocation& call);
absl::StatusOr<Value> Lower(const Text& text, const Invocation& call);
absl::StatusOr<Value> Capitalize(const Text& text, const Invocation& call);
// Words begin after any character that is no letter.
absl::StatusOr<Value> Title(const Text& text, const Invocation& call);
// Words begin after spaces, hyphens and opening brackets: Jinja's own.
absl::StatusOr<Value> TitleWords(const Text& text, const Invocation& call);
absl::StatusOr<Value> SwapCase(const Text& text, const Invocation& call);

}  // namespace penstock::jinja
