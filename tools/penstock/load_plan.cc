#include "tools/penstock/load_plan.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::json;

constexpr int kTraceBlockTokens = 512;

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

// An integer in [0, 2^31), or INVALID_ARGUMENT with the field's name.
absl::StatusOr<int> Count(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer() || *found < 0 ||
      *found > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", field, "\" must be a count"));
  }
  return found->get<int>();
}

absl::StatusOr<PlannedRequest> PlanLine(const std::string& line,
                                        uint64_t number,
                                        const LoadLimits& limits) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  PlannedRequest request;
  ASSIGN_OR_RETURN(request.due_ms, Count(object, "timestamp"));
  ASSIGN_OR_RETURN(const int input, Count(object, "input_length"));
  ASSIGN_OR_RETURN(const int output, Count(object, "output_length"));
  const int length = std::clamp(input, 1, limits.max_prompt_tokens);
  request.output_tokens = std::clamp(output, 1, limits.context_length - length);
  const Json hashes = object.value("hash_ids", Json::array());
  size_t block = 0;
  while (static_cast<int>(request.prompt.size()) < length) {
    // What has no hash is this line's own.
    uint64_t seed = ~number;
    if (block < hashes.size() && hashes[block].is_number_unsigned()) {
      seed = hashes[block].get<uint64_t>();
    }
    SeededRandom random(seed);
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

absl::StatusOr<std::vector<PlannedRequest>> PlanTrace(
    std::istream& trace, int max_requests, double speed,
    const LoadLimits& limits) {
  CHECK(speed > 0);
  std::vector<PlannedRequest> plan;
  std::string line;
  while (static_cast<int>(plan.size()) < max_requests &&
         std::getline(trace, line)) {
    const size_t number = plan.size() + 1;
    absl::StatusOr<PlannedRequest> request = PlanLine(line, number, limits);
    if (!request.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "trace line ", number, ": ", request.status().message()));
    }
    request->due_ms /= speed;
    plan.push_back(*std::move(request));
  }
  std::stable_sort(plan.begin(), plan.end(),
                   [](const PlannedRequest& a, const PlannedRequest& b) {
                     return a.due_ms < b.due_ms;
                   });
  return plan;
}

}  // namespace penstock
