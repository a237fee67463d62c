#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/test_engine.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using nlohmann::json;

const ModelFile& Model() {
  static const auto& model = *new std::unique_ptr<ModelFile>(
      OpenModelFile(PENSTOCK_MODELS "/SmolLM2-135M-Instruct.Q4_1.gguf")
          .value());
  return *model;
}

std::vector<json> Cases() {
  std::ifstream file(PENSTOCK_TEST_DATA "/cases/generation.jsonl");
  std::vector<json> cases;
  for (std::string line; std::getline(file, line);) {
    cases.push_back(json::parse(line));
  }
  return cases;
}

TestEngine MakeEngine(CpuBackendOptions options = {}) {
  options.model = &Model();
  if (options.threads == 1) options.threads = 2;
  return TestEngine(std::move(options), /*blocks=*/512);
}

// The reference computes in float64; see the cases' README for what 8-bit
// activations may cost. Ours must stay well below the best peer's mean of
// 0.177.
TEST(CpuBackendTest, FollowsTheReferenceTeacherForced) {
  TestEngine engine = MakeEngine();
  double error_sum = 0, worst = 0;
  int errors = 0, steps = 0, differs = 0;
  for (const json& c : Cases()) {
    std::vector<TokenId> tokens = c["prompt_ids"];
    const size_t prompt = tokens.size();
    const std::vector<TokenId> generated = c["gen_ids"];
    tokens.insert(tokens.end(), generated.begin(), generated.end() - 1);
    const std::vector<SampledToken> sampled =
        engine.Prefill({.tokens = tokens, .first_sample = prompt - 1});
    ASSERT_EQ(sampled.size(), generated.size());
    for (size_t i = 0; i < generated.size(); ++i, ++steps) {
      const double margin = c["margins"][i];
      if (sampled[i].token != generated[i]) {
        ++differs;
        EXPECT_LT(margin, 1.0) << c["name"] << " step " << i;
      }
      std::map<TokenId, double> ours(sampled[i].logprobs.top.begin(),
                                     sampled[i].logprobs.top.end());
      double step_error = 0;
      for (const json& top : c["top5"][i]) {
        const auto found = ours.find(top[0].get<TokenId>());
        ASSERT_NE(found, ours.end()) << c["name"] << " step " << i;
        step_error = std::max(step_error,
                              std::fabs(found->second - top[1].get<double>()));
      }
      error_sum += step_error;
      ++errors;
      worst = std::max(worst, step_error);
    }
  }
  RecordProperty("mean_top5_error", std::to_string(error_sum / errors));
  std::printf("mean top-5 error %.4f, worst %.3f, argmax differs in %d of %d\n",
              error_sum / errors, worst, differs, steps);
  EXPECT_LT(error_sum / errors, 0.17);
  EXPECT_LT(worst, 1.0);
  EXPECT_LT(differs, steps / 50);
}

TEST(CpuBackendTest, GreedyFollowsTheReferenceWhereItIsClear) {
  TestEngine engine = MakeEngine();
  const std::vector<json> cases = Cases();
  for (size_t i = 0; i < cases.size(); i += 4) {
    const json& c = cases[i];
    const int robust = c["robust_len_q8"];
    const std::vector<TokenId> expected = c["gen_ids"];
    const int steps = std::min<int>(robust, expected.size());
    const std::vector<TokenId> tokens = engine.Generate(c["prompt_ids"], steps);
    EXPECT_THAT(tokens, testing::ElementsAreArray(expected.begin(),
                                                  expected.begin() + steps))
        << c["name"];
  }
}

}  // namespace
}  // namespace penstock
