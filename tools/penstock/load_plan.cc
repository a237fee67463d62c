#include "tools/penstock/load_plan.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace penstock {
namespace {

// Low ids are special and single-byte tokens; text is mostly made of others.
TokenId AnyToken(const LoadLimits& limits, Random& random) {
  const int first = std::min(1000, limits.vocab_size / 2);
  return first + static_cast<TokenId>(random.Below(limits.vocab_size - first));
}

std::vector<TokenId> RandomTokens(int count, const LoadLimits& limits,
                                  Random& random) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = AnyToken(limits, random);
  return tokens;
}

PlannedRequest PlanRequest(const TraceRequest& recorded, uint64_t number,
                           const LoadLimits& limits) {
  PlannedRequest request;
  // The prompt gives way to the answer, up to half of the context.
  request.output_tokens = std::clamp(recorded.output_tokens, 1,
                                     std::max(1, limits.context_length / 2));
  const int length =
      std::clamp(recorded.input_tokens, 1,
                 std::min(limits.max_prompt_tokens,
                          limits.context_length - request.output_tokens));
  request.cut = length < recorded.input_tokens ||
                request.output_tokens < recorded.output_tokens;
  size_t block = 0;
  while (static_cast<int>(request.prompt.size()) < length) {
    // What has no hash is this request's own.
    SeededRandom random(block < recorded.hashes.size() ? recorded.hashes[block]
                                                       : ~number);
    const std::vector<TokenId> tokens =
        RandomTokens(kTraceBlockTokens, limits, random);
    request.prompt.insert(request.prompt.end(), tokens.begin(), tokens.end());
    ++block;
  }
  request.prompt.resize(length);
  return request;
}

}  // namespace

std::vector<PlannedRequest> PlanUniform(const UniformLoad& load,
                                        const LoadLimits& limits,
                                        Random& random) {
  std::vector<PlannedRequest> plan(load.requests);
  double due_ms = 0;
  for (PlannedRequest& request : plan) {
    request.due_ms = due_ms;
    request.prompt = RandomTokens(load.input_tokens, limits, random);
    request.output_tokens = load.output_tokens;
    if (load.rate > 0) {
      due_ms += -std::log1p(-random.Uniform()) * 1000 / load.rate;
    }
  }
  return plan;
}

std::vector<PlannedRequest> PlanTrace(absl::Span<const TraceRequest> trace,
                                      int max_requests, double speed,
                                      const LoadLimits& limits) {
  CHECK(speed > 0);
  std::vector<PlannedRequest> plan;
  for (const TraceRequest& recorded : trace) {
    if (static_cast<int>(plan.size()) >= max_requests) break;
    plan.push_back(PlanRequest(recorded, plan.size() + 1, limits));
    plan.back().due_ms = absl::ToDoubleMilliseconds(recorded.at) / speed;
  }
  return plan;
}

}  // namespace penstock
