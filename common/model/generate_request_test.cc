#include "common/model/generate_request.h"

#include <cmath>
#include <functional>
#include <string>
#include <utility>
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
                               .max_stop_ids = 3,
                               .max_logprobs = 20,
                               .max_answers = 8,
                               .max_logit_bias = 2,
                               .max_dry_breakers = 4};

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
      [](auto& r) { r.sampling.min_p = 1; },
      [](auto& r) { r.sampling.typical_p = 1e-30f; },
      [](auto& r) { r.sampling.top_n_sigma = 100; },
      [](auto& r) {
        r.sampling.penalties = {0.01f, -100, -100, 0};
      },
      [](auto& r) {
        r.sampling.penalties = {100, 100, 100, 1 << 30};
      },
      [](auto& r) {
        r.sampling.dry = {100, 1, 1, 0, {"a", "b", "c", "12345"}};
      },
      [](auto& r) {
        r.sampling.dry = {0, 100, 1 << 30, -1, {}};
      },
      [](auto& r) {
        r.sampling.xtc = {1, 1};
      },
      [](auto& r) {
        r.sampling.mirostat = {true, 1e-30f, 1};
      },
      [](auto& r) {
        r.sampling.logit_bias = {{0, -100}, {99, 100}};
      },
      [](auto& r) {
        r.sampling.allowed_tokens = {0, 50, 99};
      },
      [](auto& r) {
        for (int i = kSamplerStageCount - 1; i >= 0; --i) {
          r.sampling.stages.push_back(static_cast<SamplerStage>(i));
        }
      },
      [](auto& r) { r.stop.min_tokens = r.stop.max_tokens; },
      [](auto& r) {
        r.stop.stop_ids = {5, 5, 5};
      },
      [](auto& r) { r.prompt_logprobs = 20; },
      [](auto& r) { r.prompt_logprobs = r.stop.max_tokens = 0; },
      [](auto& r) { r.n = 8; },
      [](auto& r) { r.n = r.best_of = 2; },
      [](auto& r) { r.best_of = 8; },
      [](auto& r) {
        r.n = r.beam.width = 8;
        r.beam.length_penalty = -10;
        r.sampling.temperature = 0;
        r.sampling.seed = 1;
        r.sampling.logprobs = 3;
        r.sampling.penalties.window = 3;  // of penalties that are off
        r.stop.min_tokens = 3;
      },
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
      {"stop.max_tokens", "1 or more",
       [](auto& r) {
         r.prompt_logprobs = 0;
         r.stop.max_tokens = -1;
       }},
      {"stop.min_tokens", "[0, 16]", [](auto& r) { r.stop.min_tokens = 17; }},
      {"stop.min_tokens", "[0, 16]", [](auto& r) { r.stop.min_tokens = -1; }},
      {"stop.ids is 4 tokens", "at most 3",
       [](auto& r) { r.stop.stop_ids.assign(4, 1); }},
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

// Of the stages between logits and token.
std::vector<Refusal> StageRefusals() {
  return {
      {"sampling.min_p", "[0, 1]", [](auto& r) { r.sampling.min_p = -0.1f; }},
      {"sampling.min_p", "[0, 1]", [](auto& r) { r.sampling.min_p = NAN; }},
      {"sampling.typical_p", "(0, 1]",
       [](auto& r) { r.sampling.typical_p = 0; }},
      {"sampling.typical_p", "(0, 1]",
       [](auto& r) { r.sampling.typical_p = NAN; }},
      {"sampling.top_n_sigma", "[0, 100]",
       [](auto& r) { r.sampling.top_n_sigma = -1; }},
      {"sampling.top_n_sigma", "[0, 100]",
       [](auto& r) { r.sampling.top_n_sigma = NAN; }},
      {"sampling.repetition_penalty", "[0.01, 100]",
       [](auto& r) { r.sampling.penalties.repetition = 0; }},
      {"sampling.repetition_penalty", "[0.01, 100]",
       [](auto& r) { r.sampling.penalties.repetition = NAN; }},
      {"sampling.frequency_penalty", "[-100, 100]",
       [](auto& r) { r.sampling.penalties.frequency = INFINITY; }},
      {"sampling.presence_penalty", "[-100, 100]",
       [](auto& r) { r.sampling.penalties.presence = NAN; }},
      {"sampling.penalty_window", "-1 (all) or more",
       [](auto& r) { r.sampling.penalties.window = -2; }},
      {"sampling.dry_multiplier", "[0, 100]",
       [](auto& r) { r.sampling.dry.multiplier = NAN; }},
      {"sampling.dry_base", "[1, 100]",
       [](auto& r) { r.sampling.dry.base = 0.9f; }},
      {"sampling.dry_allowed_length", "1 or more",
       [](auto& r) { r.sampling.dry.allowed_length = 0; }},
      {"sampling.dry_range", "-1 (all) or more",
       [](auto& r) { r.sampling.dry.window = -2; }},
      {"sampling.dry_breakers is 5 strings", "at most 4",
       [](auto& r) { r.sampling.dry.breakers.assign(5, "a"); }},
      {"sampling.dry_breakers is 0 bytes", "1 to 5",
       [](auto& r) { r.sampling.dry.breakers = {""}; }},
      {"sampling.dry_breakers is 6 bytes", "1 to 5",
       [](auto& r) { r.sampling.dry.breakers = {"123456"}; }},
      {"sampling.xtc_probability", "[0, 1]",
       [](auto& r) { r.sampling.xtc.probability = 1.1f; }},
      {"sampling.xtc_threshold", "[0, 1]",
       [](auto& r) { r.sampling.xtc.threshold = NAN; }},
      {"sampling.mirostat_tau", "(0, 100]",
       [](auto& r) { r.sampling.mirostat.tau = 0; }},
      {"sampling.mirostat_eta", "(0, 1]",
       [](auto& r) { r.sampling.mirostat.eta = NAN; }},
      {"sampling.logit_bias is 3 tokens", "at most 2",
       [](auto& r) {
         r.sampling.logit_bias = {{1, 0}, {2, 0}, {3, 0}};
       }},
      {"sampling.logit_bias is 100", "[0, 100)",
       [](auto& r) {
         r.sampling.logit_bias = {{100, 0}};
       }},
      {"sampling.logit_bias is out of order at 1", "each token once",
       [](auto& r) {
         r.sampling.logit_bias = {{1, 0}, {1, 0}};
       }},
      {"sampling.logit_bias[7] is nan", "[-100, 100]",
       [](auto& r) {
         r.sampling.logit_bias = {{7, NAN}};
       }},
      {"sampling.allowed_tokens is -1", "[0, 100)",
       [](auto& r) { r.sampling.allowed_tokens = {-1}; }},
      {"sampling.allowed_tokens is out of order at 4", "each token once",
       [](auto& r) {
         r.sampling.allowed_tokens = {5, 4};
       }},
      {"sampling.stages is wrong at stage 3", "each at most once",
       [](auto& r) {
         r.sampling.stages = {SamplerStage::kTopK, SamplerStage::kTopK};
       }},
      {"sampling.stages is wrong at stage 9", "known stages",
       [](auto& r) {
         r.sampling.stages = {static_cast<SamplerStage>(kSamplerStageCount)};
       }},
  };
}

std::vector<Refusal> AnswerRefusals() {
  std::vector<Refusal> refusals = {
      {"n is 0", "[1, 8]", [](auto& r) { r.n = 0; }},
      {"n is 9", "[1, 8]", [](auto& r) { r.n = 9; }},
      {"best_of is 2", "[3, 8]",
       [](auto& r) {
         r.n = 3;
         r.best_of = 2;
       }},
      {"best_of is 9", "[1, 8]", [](auto& r) { r.best_of = 9; }},
      {"best_of is -1", "[1, 8]", [](auto& r) { r.best_of = -1; }},
      {"prompt_logprobs", "[0, 20]", [](auto& r) { r.prompt_logprobs = 21; }},
      {"prompt_logprobs", "[0, 20]", [](auto& r) { r.prompt_logprobs = -2; }},
      {"beam.width is 2", "[3, 8]",
       [](auto& r) {
         r.n = 3;
         r.beam.width = 2;
       }},
      {"beam.width is 9", "[1, 8]", [](auto& r) { r.beam.width = 9; }},
      {"beam.width is -1", "[1, 8]", [](auto& r) { r.beam.width = -1; }},
      {"beam.length_penalty", "[-10, 10]",
       [](auto& r) {
         r.beam = {2, NAN};
       }},
      {"best_of cannot go with beam", "leave one",
       [](auto& r) { r.beam.width = r.best_of = 2; }},
  };
  const std::vector<std::pair<std::string, Edit>> drawing = {
      {"temperature", [](auto& r) { r.sampling.temperature = 0.5f; }},
      {"top_k", [](auto& r) { r.sampling.top_k = 5; }},
      {"top_p", [](auto& r) { r.sampling.top_p = 0.5f; }},
      {"min_p", [](auto& r) { r.sampling.min_p = 0.5f; }},
      {"typical_p", [](auto& r) { r.sampling.typical_p = 0.5f; }},
      {"top_n_sigma", [](auto& r) { r.sampling.top_n_sigma = 1; }},
      {"repetition_penalty",
       [](auto& r) { r.sampling.penalties.repetition = 2; }},
      {"frequency_penalty",
       [](auto& r) { r.sampling.penalties.frequency = 2; }},
      {"presence_penalty", [](auto& r) { r.sampling.penalties.presence = 2; }},
      {"dry_multiplier", [](auto& r) { r.sampling.dry.multiplier = 2; }},
      {"xtc_probability", [](auto& r) { r.sampling.xtc.probability = 1; }},
      {"mirostat", [](auto& r) { r.sampling.mirostat.on = true; }},
      {"logit_bias",
       [](auto& r) {
         r.sampling.logit_bias = {{1, 1}};
       }},
      {"allowed_tokens", [](auto& r) { r.sampling.allowed_tokens = {1}; }},
  };
  for (const auto& [field, edit] : drawing) {
    refusals.push_back({"sampling." + field + " cannot go with beam",
                        "leave one", [edit = edit](auto& r) {
                          r.beam.width = 2;
                          edit(r);
                        }});
  }
  return refusals;
}

TEST(GenerateRequestTest, RefusesWithFieldAndRange) {
  std::vector<Refusal> refusals = Refusals();
  for (const auto& more : {StageRefusals(), AnswerRefusals()}) {
    refusals.insert(refusals.end(), more.begin(), more.end());
  }
  for (const Refusal& refusal : refusals) {
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
