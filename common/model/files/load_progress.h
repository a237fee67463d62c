#pragma once

#include <cstdint>
#include <functional>

#include "absl/strings/string_view.h"

namespace penstock {

// What a load is at: "reading" or "quantising", and how far. Called from any
// of its threads, also at the same time.
using LoadProgress = std::function<void(
    absl::string_view stage, uint64_t bytes_more, uint64_t bytes_total)>;

}  // namespace penstock
