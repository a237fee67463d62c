#include "tools/simulator/trace/trace_prompt.h"

#include "common/base/check.h"
#include "tools/simulator/sim_model.h"

namespace penstock {

std::vector<TokenId> TracePrompt(const TraceRequest& request, uint64_t number,
                                 uint64_t loop, int vocabulary) {
  CHECK(vocabulary > 1);
  const auto choices = static_cast<uint64_t>(vocabulary - 1);
  std::vector<TokenId> tokens(request.input_tokens);
  for (int i = 0; i < request.input_tokens; ++i) {
    const auto run = static_cast<size_t>(i / kTraceBlockTokens);
    const uint64_t own = ~number - run;  // far from any recorded id
    const uint64_t id = run < request.hashes.size() ? request.hashes[run] : own;
    const uint64_t bits = SimModel::Fold(
        SimModel::Fold(SimModel::Fold(0, loop), id), i % kTraceBlockTokens);
    tokens[i] = 1 + static_cast<TokenId>(((bits >> 32) * choices) >> 32);
  }
  return tokens;
}

}  // namespace penstock
