#include "tools/penstock/sampling_flags.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// The request that a command line makes, with `status` of reading it.
v1::GenerateRequest Parse(std::vector<std::string> args,
                          absl::Status* status = nullptr) {
  CLI::App app;
  SamplingFlags flags;
  flags.AddTo(app);
  std::reverse(args.begin(), args.end());
  app.parse(args);
  v1::GenerateRequest request;
  const absl::Status filled = flags.Fill(&request);
  if (status != nullptr)
    *status = filled;
  else
    EXPECT_TRUE(filled.ok()) << filled;
  return request;
}

void ExpectRequest(const v1::GenerateRequest& request,
                   const std::string& text) {
  v1::GenerateRequest expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &expected));
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(request, expected))
      << request.DebugString();
}

TEST(SamplingFlagsTest, WhatIsNotGivenStaysAbsent) {
  ExpectRequest(Parse({}), "sampling {} stop { max_tokens: 128 }");
}

TEST(SamplingFlagsTest, EachFlagSetsItsField) {
  ExpectRequest(Parse({"--temperature",
                       "0",
                       "--top-k",
                       "1",
                       "--top-p",
                       "0.5",
                       "--min-p",
                       "0.25",
                       "--typical-p",
                       "0.75",
                       "--top-n-sigma",
                       "1.5",
                       "--xtc-probability",
                       "0.5",
                       "--xtc-threshold",
                       "0.125",
                       "--mirostat",
                       "--mirostat-tau",
                       "3",
                       "--mirostat-eta",
                       "0.5",
                       "--repetition-penalty",
                       "1.5",
                       "--presence-penalty",
                       "-1",
                       "--frequency-penalty",
                       "2",
                       "--penalty-window",
                       "64",
                       "--dry-multiplier",
                       "0.5",
                       "--dry-base",
                       "2",
                       "--dry-allowed-length",
                       "3",
                       "--dry-range",
                       "-1",
                       "--seed",
                       "9",
                       "--logprobs",
                       "4"}),
                R"(sampling {
           temperature: 0 top_k: 1 top_p: 0.5 min_p: 0.25 typical_p: 0.75
           top_n_sigma: 1.5 xtc_probability: 0.5 xtc_threshold: 0.125
           mirostat: true mirostat_tau: 3 mirostat_eta: 0.5
           repetition_penalty: 1.5 presence_penalty: -1 frequency_penalty: 2
           penalty_window: 64 dry_multiplier: 0.5 dry_base: 2
           dry_allowed_length: 3 dry_range: -1 seed: 9 logprobs: 4
         }
         stop { max_tokens: 128 })");
  ExpectRequest(Parse({"--max-tokens",
                       "9",
                       "--min-tokens",
                       "3",
                       "--stop",
                       "a",
                       "--stop",
                       "b",
                       "--stop-id",
                       "2",
                       "--ignore-eos",
                       "--n",
                       "2",
                       "--best-of",
                       "3",
                       "--beam",
                       "4",
                       "--length-penalty",
                       "0.5",
                       "--prompt-logprobs",
                       "0"}),
                R"(sampling {}
         stop { max_tokens: 9 min_tokens: 3 strings: "a" strings: "b" ids: 2
                ignore_eos: true }
         n: 2 best_of: 3 beam { width: 4 length_penalty: 0.5 }
         prompt_logprobs: 0)");
}

TEST(SamplingFlagsTest, ListsAreRead) {
  ExpectRequest(
      Parse({"--logit-bias", "11:-2.5", "--logit-bias", "3:1",
             "--allowed-token", "5", "--allowed-token", "4", "--dry-breaker",
             ";", "--stages", "temperature,top_n_sigma,penalties"}),
      R"(sampling {
           logit_bias { key: 11 value: -2.5 } logit_bias { key: 3 value: 1 }
           allowed_tokens: 5 allowed_tokens: 4
           dry_breakers { strings: ";" }
           stages: SAMPLER_STAGE_TEMPERATURE stages: SAMPLER_STAGE_TOP_N_SIGMA
           stages: SAMPLER_STAGE_PENALTIES
         }
         stop { max_tokens: 128 })");
  EXPECT_TRUE(Parse({"--dry-no-breakers"}).sampling().has_dry_breakers());
}

TEST(SamplingFlagsTest, WhatCannotBeReadIsNamed) {
  for (const std::string bad : {"11", "a:1", "1:b", "1:2:3"}) {
    absl::Status status;
    Parse({"--logit-bias", bad}, &status);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--logit-bias"));
  }
  absl::Status status;
  Parse({"--stages", "top_k,unspecified"}, &status);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\"unspecified\" is not one of penalties,dry"));
}

}  // namespace
}  // namespace penstock
