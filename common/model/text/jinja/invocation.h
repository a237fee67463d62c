#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/model/text/civil_time.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// The evaluated arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// What a rendering knows beside its variables.
struct World {
  absl::optional<CivilTime> now;  // for strftime_now
};

// One call of a filter, test, method or function: what it is called for
// messages, where it stands, what it was given and what it may cost.
struct Invocation {
  absl::string_view name;
  int line;
  Budget& budget;
  const World& world;
  Arguments arguments;

  // The arguments by parameter, in their order, null where not given.
  // INVALID_ARGUMENT when there are more, fewer than `required`, or one twice;
  // UNIMPLEMENTED for a named one that is not among the parameters.
  absl::StatusOr<std::vector<const Value*>> Bind(
      absl::Span<const absl::string_view> parameters, size_t required) const;

  // INVALID_ARGUMENT that names the call.
  absl::Status Fail(absl::string_view what) const;
};

// Of a bound argument: its text or integer; INVALID_ARGUMENT when it is
// another type. A null or None argument gives `otherwise`.
absl::StatusOr<Text> TextArgument(const Invocation& call, const Value* argument,
                                  absl::string_view otherwise);
absl::StatusOr<int64_t> IntegerArgument(const Invocation& call,
                                        const Value* argument,
                                        int64_t otherwise);

// What a `for` over the value sees: items, keys, characters, nothing. Reads a
// generator to its end.
// INVALID_ARGUMENT when it cannot be iterated over.
absl::StatusOr<Value::ListPtr> Iterated(const Value& value, Budget& budget,
                                        int line);

// Python's len(), an integer; INVALID_ARGUMENT for what has none.
absl::StatusOr<Value> LengthOf(const Value& value, const Invocation& call);

// Makes a value of data. UNIMPLEMENTED when an item is not data;
// RESOURCE_EXHAUSTED when it nests deeper than kMaxDataDepth.
absl::StatusOr<Value> MakeList(List list, Budget& budget, int line);
absl::StatusOr<Value> MakeGenerator(std::vector<Value> items, Budget& budget,
                                    int line);
absl::StatusOr<Value> MakeDict(Dict dict, Budget& budget, int line);

// INVALID_ARGUMENT for lists and dictionaries, which are no keys.
absl::Status CheckHashable(const Value& value, int line);

// Charges for looking for `needle` in `text`, before it is done.
absl::Status TakeSearch(absl::string_view text, absl::string_view needle,
                        Budget& budget, int line);

}  // namespace penstock::jinja
