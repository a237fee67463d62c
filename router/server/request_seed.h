#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "router/core/stable_hash.h"

namespace penstock {

// The seed of a request that names none: it follows from the request's id, so
// that the same id gives the same answer again, at any router. `prompt` counts
// those of one call.
inline uint64_t SeedOf(absl::string_view request_id, int prompt = 0) {
  return StableHash(absl::StrCat(prompt, ":", request_id));
}

}  // namespace penstock
