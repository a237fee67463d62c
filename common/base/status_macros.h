#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The only two macros that hide control flow. `expr` is evaluated once.

#define RETURN_IF_ERROR(expr)                      \
  do {                                             \
    if (absl::Status status_macro_result = (expr); \
        !status_macro_result.ok()) {               \
      return status_macro_result;                  \
    }                                              \
  } while (false)

#define PENSTOCK_CONCAT_INNER(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_INNER(a, b)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(PENSTOCK_CONCAT(statusor_, __LINE__), lhs, expr)

#define ASSIGN_OR_RETURN_IMPL(statusor, lhs, expr)         \
  auto statusor = (expr);                                  \
  if (!statusor.ok()) return std::move(statusor).status(); \
  lhs = *std::move(statusor)
