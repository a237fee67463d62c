#pragma once

#include <cstdint>
#include <vector>

#include "common/base/id.h"
#include "tools/trace/trace_file.h"

namespace penstock {

// The tokens of a request's prompt: a fixed function of the hash ids, so that
// prompts share exactly the blocks that they shared when they were recorded,
// and of `loop`, so that a trace played again shares nothing with its earlier
// loops. `number` tells requests without hash ids apart. Every id is below
// `vocabulary` and never 0. Precondition: vocabulary > 1.
std::vector<TokenId> TracePrompt(const TraceRequest& request, uint64_t number,
                                 uint64_t loop, int vocabulary);

}  // namespace penstock
