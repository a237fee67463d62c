#pragma once

#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/random.h"
#include "tools/trace/trace_file.h"

namespace penstock {

// One request of a load: when it is due, what it sends and how much it wants.
struct PlannedRequest {
  double due_ms = 0;  // from the start
  std::vector<TokenId> prompt;
  int output_tokens = 0;
  bool cut = false;  // to what the model allows
};

// What a served model allows; longer requests of a trace are cut to it.
struct LoadLimits {
  int vocab_size = 0;
  int max_prompt_tokens = 0;
  int context_length = 0;
};

struct UniformLoad {
  int requests = 0;
  double rate = 0;  // a second, with exponential gaps; 0: all due at once
  int input_tokens = 0;
  int output_tokens = 0;
};

// Prompts of random tokens, each different from its first block on.
std::vector<PlannedRequest> PlanUniform(const UniformLoad& load,
                                        const LoadLimits& limits,
                                        Random& random);

// The first `max_requests` of a recorded load, played `speed` times as fast.
// Equal hash ids are equal runs of tokens, so that shared prefixes stay shared.
// Precondition: speed > 0.
std::vector<PlannedRequest> PlanTrace(absl::Span<const TraceRequest> trace,
                                      int max_requests, double speed,
                                      const LoadLimits& limits);

}  // namespace penstock
