#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernel_test_support.h"
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

CpuBackendOptions WithModel(CpuBackendOptions options) {
  options.model = &Model();
  return options;
}

TestEngine MakeEngine(CpuBackendOptions options = {}) {
  options.threads = 2;
  return TestEngine(WithModel(options), /*blocks=*/512);
}

// Errors of log-probabilities against the golden generations, with the golden
// tokens fed whatever the backend would have drawn.
struct Errors {
  double mean = 0;    // of the worst of the five best, over all steps
  double worst = 0;   // of all
  int differs = 0;    // steps whose best token is another
  double margin = 0;  // largest golden margin where it is
  int steps = 0;
};

// The error of one step: the largest over the golden five best.
double StepError(const SampledToken& sampled, const json& top5) {
  const std::map<TokenId, double> ours(sampled.logprobs.top.begin(),
                                       sampled.logprobs.top.end());
  double error = 0;
  for (const json& top : top5) {
    const auto found = ours.find(top[0].get<TokenId>());
    if (found == ours.end()) return INFINITY;
    error = std::max(error, std::fabs(found->second - top[1].get<double>()));
  }
  return error;
}

Errors TeacherForce(TestEngine& engine) {
  Errors errors;
  double sum = 0;
  for (const json& c : Cases()) {
    std::vector<TokenId> tokens = c["prompt_ids"];
    const size_t prompt = tokens.size();
    const std::vector<TokenId> generated = c["gen_ids"];
    tokens.insert(tokens.end(), generated.begin(), generated.end() - 1);
    const std::vector<SampledToken> sampled =
        engine.Prefill({.tokens = tokens, .first_sample = prompt - 1});
    CHECK(sampled.size() == generated.size());
    for (size_t i = 0; i < generated.size(); ++i, ++errors.steps) {
      const double error = StepError(sampled[i], c["top5"][i]);
      sum += error;
      errors.worst = std::max(errors.worst, error);
      if (sampled[i].token == generated[i]) continue;
      ++errors.differs;
      errors.margin = std::max(errors.margin, c["margins"][i].get<double>());
    }
  }
  errors.mean = sum / errors.steps;
  std::printf("mean error %.4f, worst %.3f, %d of %d argmax differ\n",
              errors.mean, errors.worst, errors.differs, errors.steps);
  return errors;
}

// The cases' README says what 8-bit activations cost the best peer: 0.177.
TEST(CpuBackendTest, StaysCloseToTheReference) {
  TestEngine engine = MakeEngine();
  const Errors errors = TeacherForce(engine);
  EXPECT_EQ(errors.steps, 1175);
  EXPECT_LT(errors.mean, 0.06);
  EXPECT_LT(errors.worst, 1.2);
  EXPECT_LT(errors.differs, errors.steps / 50);
  EXPECT_LT(errors.margin, 0.3);
}

TEST(CpuBackendTest, RefinedEverywhereIsAsExactAsPagesInF16) {
  CpuBackendOptions options;
  options.precision = InputPrecision::Exact();
  TestEngine engine = MakeEngine(options);
  const Errors errors = TeacherForce(engine);
  EXPECT_LT(errors.mean, 0.005);
  EXPECT_LT(errors.worst, 0.05);
  EXPECT_EQ(errors.differs, 0);
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

std::vector<TokenId> Prompt(size_t tokens) {
  std::vector<TokenId> prompt;
  for (const json& c : Cases()) {
    for (TokenId id : c["prompt_ids"]) prompt.push_back(id);
  }
  CHECK(prompt.size() >= tokens);
  prompt.resize(tokens);
  return prompt;
}

void ExpectSameBits(const std::vector<SampledToken>& a,
                    const std::vector<SampledToken>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].token, b[i].token) << "sample " << i;
    ASSERT_EQ(a[i].logprobs.logprob, b[i].logprobs.logprob) << "sample " << i;
    ASSERT_EQ(a[i].logprobs.top, b[i].logprobs.top) << "sample " << i;
  }
}

// Long enough for two attention splits.
constexpr size_t kLongPrompt = 300;
constexpr size_t kFirstSample = 270;

std::vector<SampledToken> InChunks(TestEngine& engine, int chunk,
                                   int first_block = 0) {
  return engine.Prefill({.tokens = Prompt(kLongPrompt),
                         .first_block = first_block,
                         .first_sample = kFirstSample},
                        chunk);
}

TEST(CpuBackendTest, ChunkingChangesNoBit) {
  TestEngine engine = MakeEngine();
  const std::vector<SampledToken> whole = InChunks(engine, 512);
  ASSERT_EQ(whole.size(), kLongPrompt - kFirstSample);
  for (int chunk : {1, 7, 16, 130}) {
    SCOPED_TRACE(chunk);
    ExpectSameBits(InChunks(engine, chunk, 40), whole);
  }
}

TEST(CpuBackendTest, NeighboursChangeNoBit) {
  TestEngine engine = MakeEngine();
  const std::vector<SampledToken> alone = InChunks(engine, 512);
  // The last tokens again, one a step, beside decoding and prefilling others.
  const std::vector<TokenId> prompt = Prompt(kLongPrompt);
  std::vector<SampledToken> crowded;
  for (size_t i = kFirstSample; i < kLongPrompt; ++i) {
    const int position = static_cast<int>(i);
    std::vector<TestEngine::Chunk> step;
    const size_t before = i % 5;
    for (size_t n = 0; n < before; ++n) {
      const int block = static_cast<int>(40 + 40 * n);
      step.push_back({.tokens = Prompt(3 * n + 1), .first_block = block});
      step.back().first_sample = step.back().tokens.size() - 1;
    }
    step.push_back({.tokens = {prompt[i]}, .first_position = position});
    step.push_back({.tokens = Prompt(20), .first_block = 400});
    crowded.push_back(engine.Step(step)[before]);
  }
  ExpectSameBits(crowded, alone);
}

TEST(CpuBackendTest, ThreadsAndPathsChangeNoBit) {
  TestEngine reference = MakeEngine();
  const std::vector<SampledToken> expected = InChunks(reference, 64);
  for (int threads : {1, 3}) {
    CpuBackendOptions options;
    options.threads = threads;
    options.spin = false;
    TestEngine engine(WithModel(options), 64);
    ExpectSameBits(InChunks(engine, 64), expected);
  }
  const std::vector<TokenId> prompt = Prompt(40);
  const std::vector<SampledToken> short_expected =
      reference.Prefill({.tokens = prompt, .first_sample = 30});
  for (CpuPath path : TestablePaths()) {
    SCOPED_TRACE(CpuPathName(path));
    CpuBackendOptions options;
    options.path = path;
    TestEngine engine = MakeEngine(options);
    ExpectSameBits(engine.Prefill({.tokens = prompt, .first_sample = 30}),
                   short_expected);
  }
}

// A copy-on-write step: the copy goes on, the original is overwritten.
TEST(CpuBackendTest, CopiesBlocksBeforeThePass) {
  TestEngine engine = MakeEngine();
  const std::vector<TokenId> prompt = Prompt(13);
  engine.Prefill({.tokens = prompt});
  const std::vector<SampledToken> expected =
      engine.Step({{.tokens = {42}, .first_position = 13}});
  engine.Prefill({.tokens = prompt});
  ExpectSameBits(
      engine.Step({{.tokens = {42}, .first_position = 13, .first_block = 9}},
                  {{.from = 0, .to = 9}}),
      expected);
}

// Closed forms for this model: 576 wide, 30 layers, 960 + 576 + 3072 columns
// at 576 deep and 576 at 1536, a head of 49152 columns.
TEST(CpuBackendTest, KnowsWhatAStepCosts) {
  TestEngine engine = MakeEngine();
  StepPlan plan;
  plan.tokens = {1, 2};
  plan.positions = {30, 31};
  plan.sequences = {{.first_row = 0, .rows = 2, .first_block = 0, .blocks = 2}};
  plan.block_table = {0, 1};
  plan.samples.resize(1);
  plan.samples[0].row = 1;
  const StepCost cost = engine.backend().CostOf(plan);
  // A third of the blocks of each input is multiplied twice.
  const uint64_t rest = 576 * 576 + 3072 * 576 + 576 * 1536;
  EXPECT_EQ(
      cost.int8_ops,
      2u * (30 * 2 * 960 * 576 + 29 * 2 * rest + rest + 49152 * 576) / 3 * 4);
  EXPECT_EQ(cost.bfloat16_ops, 0u);
  EXPECT_EQ(cost.float_ops, 30u * 4 * (31 + 32) * 576);
  EXPECT_EQ(cost.kv_bytes, 30u * (32 + 2) * 2 * 2 * 192);
  // Q4_1 takes 20 bytes for 32 elements, the Q8_0 head 34.
  const uint64_t layer = 960 * 576 + rest;
  EXPECT_EQ(cost.weight_bytes, 30 * layer / 32 * 20 + 49152 * 576 / 32 * 34);
}

TEST(CpuBackendTest, RefusesWhatItCannotDo) {
  std::vector<uint8_t> arena(100);
  CpuBackendOptions options = WithModel({});
  options.arena.bytes = absl::MakeSpan(arena);
  EXPECT_EQ(CpuBackend::Create(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
