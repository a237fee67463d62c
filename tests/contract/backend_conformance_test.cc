#include "tests/contract/backend_conformance.h"

#include <cmath>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "common/env/random.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/model_cases.h"
#include "tests/contract/test_models.h"

namespace penstock {
namespace {

std::vector<TokenId> RandomPrompt(const ModelFile& model) {
  SeededRandom random(20);
  std::vector<TokenId> prompt(531);
  for (TokenId& token : prompt) {
    token = static_cast<TokenId>(random.Below(model.spec().vocab_size));
  }
  return prompt;
}

// The golden prompt of 547 tokens.
[[maybe_unused]] std::vector<TokenId> RealPrompt() {
  for (GenerationCase& golden :
       ReadGenerationCases(PENSTOCK_TEST_DATA "/cases")) {
    if (golden.prompt.size() == 547) return std::move(golden.prompt);
  }
  return {};
}

std::vector<ConformanceParam> Params() {
  std::vector<ConformanceParam> params;
  std::vector<BackendMaker> makers = AllBackends();
  for (KvType type : SmallerKvTypes()) makers.push_back(MakeCpuKeeping(type));
  for (const BackendMaker& maker : makers) {
    ConformanceParam param;
    param.maker = maker;
    param.model_name = "tiny";
    param.model = TinyModel;
    param.prompt = RandomPrompt(TinyModel());
    params.push_back(param);
    param.model_name = "tiny_of_all_types";
    param.model = TinyModelOfAllTypes;
    param.prompt = RandomPrompt(TinyModelOfAllTypes());
    params.push_back(param);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // A sanitizer would take half an hour over the real model, and sees the same
  // code on the tiny ones.
  ConformanceParam real;
  real.maker = MakeCpu(CpuPath::kAuto);
  real.model_name = "real";
  real.model = RealModel;
  real.prompt = RealPrompt();
  real.decode_tokens = 8;
  params.push_back(real);
#endif
  return params;
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendConformanceTest,
                         ::testing::ValuesIn(Params()),
                         [](const auto& info) { return info.param.name(); });

// All CPU paths, over a prompt of so many tokens.
void ExpectEqualBits(KvType type, int tokens) {
  Transcript scalar;
  for (CpuPath path : CpuPaths()) {
    SCOPED_TRACE(std::string(CpuPathName(path)) + Traits(type).name);
    ModelDriver driver(MakeCpuKeeping(type, path), TinyModelOfAllTypes(), 64);
    DrivenSequence sequence;
    sequence.tokens = RandomPrompt(TinyModelOfAllTypes());
    sequence.tokens.resize(tokens);
    Transcript drawn = driver.Prefill(sequence, 200, tokens - 131);
    SampledToken next = drawn.back();
    for (SampledToken& token : driver.Decode(sequence, std::move(next), 12)) {
      drawn.push_back(std::move(token));
    }
    if (path == CpuPath::kScalar) scalar = drawn;
    ExpectSame(drawn, scalar);
  }
}

// Whatever the instructions: the scalar path is the twin of the others.
TEST(BackendNumericsTest, CpuPathsGiveEqualBits) {
  ExpectEqualBits(KvType::kF16, 531);
}

TEST(BackendNumericsTest, CpuPathsGiveEqualBitsInEveryKvType) {
  for (KvType type : SmallerKvTypes()) ExpectEqualBits(type, 277);
}

// No backend strays far from the reference, on any tensor type.
TEST(BackendNumericsTest, QuantisedPathsStayNearTheOracle) {
  auto scores = [](const BackendMaker& maker) {
    ModelDriver driver(maker, TinyModelOfAllTypes(), 64);
    DrivenSequence sequence;
    sequence.tokens = RandomPrompt(TinyModelOfAllTypes());
    sequence.sampling.logprobs = 1 << 20;  // the whole vocabulary
    return driver.Prefill(sequence, 512, 400);
  };
  const Transcript golden = scores(MakeOracle());
  std::vector<BackendMaker> makers = AllBackends();
  for (KvType type : SmallerKvTypes()) makers.push_back(MakeCpuKeeping(type));
  for (const BackendMaker& maker : makers) {
    SCOPED_TRACE(maker.name);
    const Transcript drawn = scores(maker);
    double sum = 0;
    int count = 0;
    for (size_t i = 0; i < golden.size(); ++i) {
      std::vector<float> expected(golden[i].logprobs.top.size());
      for (auto [id, logprob] : golden[i].logprobs.top) expected[id] = logprob;
      for (auto [id, logprob] : drawn[i].logprobs.top) {
        sum += std::abs(logprob - expected[id]);
        ++count;
      }
    }
    std::cout << maker.name << ": mean error of a log-probability "
              << sum / count << "\n";
    const double limit = maker.kv_type == KvType::kInt4  ? 0.25
                         : maker.kv_type == KvType::kFp8 ? 0.1
                                                         : 0.05;
    EXPECT_LT(sum / count, limit);
  }
}

}  // namespace
}  // namespace penstock
