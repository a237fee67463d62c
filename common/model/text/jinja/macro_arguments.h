#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/invocation.h"

namespace penstock::jinja {

// What a macro's scope begins with.
struct BoundArguments {
  std::vector<std::pair<std::string, Value>> given;
  std::vector<const Macro::Parameter*> missing;
};

// The arguments by the macro's parameters, with `varargs`, `kwargs` and
// `caller` where it speaks of them. INVALID_ARGUMENT for arguments that it has
// no place for.
absl::StatusOr<BoundArguments> BindMacro(const Macro& macro,
                                         Arguments arguments, Budget& budget,
                                         int line);

}  // namespace penstock::jinja
