#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/model/text/jinja/ast.h"
#include "common/model/text/jinja/budget.h"
#include "common/model/text/jinja/value.h"

namespace penstock::jinja {

// Python's operators on values. Errors of all: INVALID_ARGUMENT for types that
// the operator is not made for, naming them; RESOURCE_EXHAUSTED.

absl::StatusOr<bool> Equal(const Value& left, const Value& right,
                           Budget& budget, int line);
absl::StatusOr<bool> Compare(Comparison comparison, const Value& left,
                             const Value& right, Budget& budget, int line);
absl::StatusOr<Value> Apply(BinaryOperator op, const Value& left,
                            const Value& right, Budget& budget, int line);
absl::StatusOr<Value> Signed(bool minus, const Value& value, int line);

// A boolean or number as a float; nullopt for others.
absl::optional<double> ToReal(const Value& value);
// INVALID_ARGUMENT naming the types that `op` is not made for.
absl::Status Mismatch(absl::string_view op, const Value& left,
                      const Value& right, int line);

// `object[index]`; Undefined when there is no such item.
absl::StatusOr<Value> Subscript(const Value& object, const Value& index,
                                Budget& budget, int line);

// `object[start:stop:step]`; parts that are not given are null.
struct SliceBounds {
  const Value* start = nullptr;
  const Value* stop = nullptr;
  const Value* step = nullptr;
};
absl::StatusOr<Value> Sliced(const Value& object, const SliceBounds& bounds,
                             Budget& budget, int line);

}  // namespace penstock::jinja
