#include "common/model/generate_request.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const RequestLimits kLimits = {.max_prompt_tokens = 7,
                               .context_length = 8,
                               .vocab_size = 100,
                               .max_stop_strings = 2,
                               .max_stop_string_bytes = 5,
                               .max_logprobs = 20};

GenerateRequest Valid() {
  GenerateRequest request;
  request.prompt = {0, 99};
  return request;
}

using Edit = std::function<void(GenerateRequest&)>;

TEST(GenerateRequestTest, AcceptsBothEndsOfEachRange) {
  const std::vector<Edit> edits = {
      [](auto& r) {},
      [](auto& r) { r.prompt.assign(7, 1); },
      [](auto& r) { r.sampling.temperature = 0; },
      [](auto& r) { r.sampling.temperature = 100; },
      [](auto& r) { r.sampling.top_k = 1 << 30; },
      [](auto& r) { r.sampling.top_p = 1e-30f; },
      [](auto& r) { r.sampling.logprobs = 0; },
      [](auto& r) { r.sampling.logprobs = 20; },
      [](auto& r) { r.stop.max_tokens = 1; },
      [](auto& r) {
        r.stop.stop_strings = {"a", "12345"};
      },
      [](auto& r) {
        r.stop.stop_ids = {0, 99};
      },
      [](auto& r) { r.timeout = absl::Nanoseconds(1); },
  };
  for (size_t i = 0; i < edits.size(); ++i) {
    GenerateRequest request = Valid();
    edits[i](request);
    EXPECT_TRUE(Validate(request, kLimits).ok())
        << i << " " << Validate(request, kLimits);
  }
}

struct Refusal {
  std::string field;    // the message starts with it
  std::string allowed;  // and says this
  Edit edit;
};

std::vector<Refusal> Refusals() {
  return {
      {"prompt is empty", "give text", [](auto& r) { r.prompt.clear(); }},
      {"prompt is 8 tokens", "at most 7",
       [](auto& r) { r.prompt.assign(8, 1); }},
      {"prompt[1] is 100", "[0, 100)", [](auto& r) { r.prompt[1] = 100; }},
      {"prompt[0] is -1", "[0, 100)", [](auto& r) { r.prompt[0] = -1; }},
      {"sampling.temperature", "[0, 100]",
       [](auto& r) { r.sampling.temperature = -0.1f; }},
      {"sampling.temperature", "[0, 100]",
       [](auto& r) { r.sampling.temperature = 100.1f; }},
      {"sampling.temperature", "[0, 100]",
       [](auto& r) { r.sampling.temperature = NAN; }},
      {"sampling.temperature", "[0, 100]",
       [](auto& r) { r.sampling.temperature = INFINITY; }},
      {"sampling.top_k", "0 (all) or more",
       [](auto& r) { r.sampling.top_k = -1; }},
      {"sampling.top_p", "(0, 1]", [](auto& r) { r.sampling.top_p = 0; }},
      {"sampling.top_p", "(0, 1]", [](auto& r) { r.sampling.top_p = 1.01f; }},
      {"sampling.top_p", "(0, 1]", [](auto& r) { r.sampling.top_p = NAN; }},
      {"sampling.logprobs", "[0, 20]",
       [](auto& r) { r.sampling.logprobs = -2; }},
      {"sampling.logprobs", "[0, 20]",
       [](auto& r) { r.sampling.logprobs = 21; }},
      {"stop.max_tokens", "1 or more", [](auto& r) { r.stop.max_tokens = 0; }},
      {"stop.strings is 3 strings", "at most 2",
       [](auto& r) {
         r.stop.stop_strings = {"a", "b", "c"};
       }},
      {"stop.strings is 0 bytes", "1 to 5",
       [](auto& r) { r.stop.stop_strings = {""}; }},
      {"stop.strings is 6 bytes", "1 to 5",
       [](auto& r) {
         r.stop.stop_strings = {"a", "123456"};
       }},
      {"stop.ids", "[0, 100)",
       [](auto& r) {
         r.stop.stop_ids = {1, 100};
       }},
      {"stop.ids", "[0, 100)", [](auto& r) { r.stop.stop_ids = {-1}; }},
      {"timeout", "longer than zero",
       [](auto& r) { r.timeout = absl::ZeroDuration(); }},
      {"timeout", "longer than zero",
       [](auto& r) { r.timeout = -absl::Seconds(1); }},
  };
}

TEST(GenerateRequestTest, RefusesWithFieldAndRange) {
  for (const Refusal& refusal : Refusals()) {
    SCOPED_TRACE(refusal.field);
    GenerateRequest request = Valid();
    refusal.edit(request);
    absl::Status status = Validate(request, kLimits);
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), StartsWith(refusal.field));
    EXPECT_THAT(std::string(status.message()), HasSubstr(refusal.allowed));
  }
}

}  // namespace
}  // namespace penstock
