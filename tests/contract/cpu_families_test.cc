#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/family_cases.h"
#include "tests/contract/model_driver.h"
#include "tests/contract/transcript.h"

namespace penstock {
namespace {

constexpr char kFolder[] = PENSTOCK_TEST_DATA "/families/";
constexpr int kBlocks = 32;
constexpr int kWhole = 512;  // rows: every prompt in one step

std::vector<std::string> Families() {
  std::vector<std::string> families;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (!std::filesystem::exists(entry.path() / "expected.json")) continue;
    families.push_back(entry.path().filename());
  }
  std::sort(families.begin(), families.end());
  return families;
}

BackendMaker Exact(CpuPath path, int threads = 2) {
  BackendMaker maker = MakeCpu(path);
  maker.make = [=](const BackendMaker::Setup& setup) {
    CpuBackendOptions options;
    options.model = setup.model;
    options.arena = setup.arena;
    options.wake = setup.wake;
    options.max_rows = setup.max_rows;
    options.max_sequences = setup.max_sequences;
    options.threads = threads;
    options.spin = false;
    options.path = path;
    options.terms = ActivationTerms::AllTwo();
    return CpuBackend::Create(std::move(options));
  };
  return maker;
}

// A prompt whose every row's log-probabilities are drawn, all of them.
DrivenSequence Sequence(const std::vector<TokenId>& tokens, int vocab_size) {
  DrivenSequence sequence;
  sequence.tokens = tokens;
  sequence.sampling = {.temperature = 0, .logprobs = vocab_size};
  return sequence;
}

class CpuFamiliesTest : public testing::TestWithParam<std::string> {
 protected:
  CpuFamiliesTest() : cases_(ReadFamilyCases(kFolder + GetParam())) {}

  std::unique_ptr<ModelFile> Open(const ModelFileOptions& options = {}) const {
    auto model = OpenModelFile(kFolder + GetParam() + "/model.gguf", options);
    CHECK(model.ok()) << model.status();
    return *std::move(model);
  }
  // Of every row of the longest prompt.
  Transcript Run(const BackendMaker& maker, const ModelFile& model,
                 int chunk = kWhole) const {
    ModelDriver driver(maker, model, kBlocks);
    const std::vector<TokenId>& tokens = cases_.back().ids;
    DrivenSequence sequence = Sequence(tokens, model.spec().vocab_size);
    return driver.Prefill(sequence, chunk, static_cast<int>(tokens.size()));
  }

  const std::vector<FamilyCase> cases_;
};

double LogSum(const std::vector<float>& logits) {
  double sum = 0;
  for (float logit : logits) sum += std::exp(double{logit});
  return std::log(sum);
}

// The largest error of a log-probability.
double Error(const SampledToken& sampled, const std::vector<float>& logits) {
  const double log_sum = LogSum(logits);
  EXPECT_EQ(sampled.logprobs.top.size(), logits.size());
  double largest = 0;
  for (const auto& [token, logprob] : sampled.logprobs.top) {
    const double error = std::abs(logprob - (logits[token] - log_sum));
    // Written so that NaN counts as an error.
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

// What F16 pages cost: 11 bits of keys and values.
TEST_P(CpuFamiliesTest, LogProbabilitiesAreThoseOfTransformers) {
  const std::unique_ptr<ModelFile> model = Open();
  ModelDriver driver(Exact(CpuPath::kAuto), *model, kBlocks);
  double largest = 0;
  for (const FamilyCase& golden : cases_) {
    DrivenSequence sequence = Sequence(golden.ids, model->spec().vocab_size);
    const Transcript drawn =
        driver.Prefill(sequence, kWhole, static_cast<int>(golden.ids.size()));
    driver.Release(sequence);
    for (size_t i = 0; i < golden.positions.size(); ++i) {
      const double error =
          Error(drawn[golden.positions[i]], golden.gguf_logits[i]);
      if (!(error <= largest)) largest = error;
    }
  }
  std::cout << absl::StreamFormat("%-18s %.1e\n", GetParam(), largest);
  EXPECT_LE(largest, 5e-3);
}

// Quantised weights, against the oracle with the same ones.
TEST_P(CpuFamiliesTest, QuantisedWeightsAreThoseOfTheOracle) {
  for (TensorType type : {TensorType::kQ8_0, TensorType::kQ4_1}) {
    const std::unique_ptr<ModelFile> model = Open({.weights = type});
    const Transcript ours = Run(Exact(CpuPath::kAuto), *model);
    const Transcript expected = Run(MakeOracle(), *model);
    ASSERT_EQ(ours.size(), expected.size());
    for (size_t row = 0; row < ours.size(); ++row) {
      std::vector<float> logprobs(model->spec().vocab_size);
      for (const auto& [token, logprob] : expected[row].logprobs.top) {
        logprobs[token] = static_cast<float>(logprob);
      }
      ASSERT_LE(Error(ours[row], logprobs), 1e-2)
          << Traits(type).name << " row " << row;
    }
  }
}

TEST_P(CpuFamiliesTest, PathsThreadsAndChunksChangeNoBit) {
  const std::unique_ptr<ModelFile> model = Open({.weights = TensorType::kQ8_0});
  const Transcript expected = Run(Exact(CpuPath::kAuto), *model);
  for (CpuPath path : CpuPaths()) {
    SCOPED_TRACE(CpuPathName(path));
    ExpectSame(Run(Exact(path), *model), expected);
  }
  for (int threads : {1, 3}) {
    SCOPED_TRACE(threads);
    ExpectSame(Run(Exact(CpuPath::kAuto, threads), *model), expected);
  }
  for (int chunk : {1, 7}) {
    SCOPED_TRACE(chunk);
    ExpectSame(Run(Exact(CpuPath::kAuto), *model, chunk), expected);
  }
}

// One row a step beside two others, of which one is a chunk of a prompt.
TEST_P(CpuFamiliesTest, NeighboursChangeNoBit) {
  const std::unique_ptr<ModelFile> model = Open({.weights = TensorType::kQ8_0});
  const Transcript expected = Run(Exact(CpuPath::kAuto), *model);
  ModelDriver driver(Exact(CpuPath::kAuto), *model, kBlocks);
  const std::vector<TokenId>& tokens = cases_.back().ids;
  const int vocab = model->spec().vocab_size;
  DrivenSequence sequence = Sequence(tokens, vocab);
  Transcript drawn;
  for (size_t i = 0; i < tokens.size(); ++i) {
    DrivenSequence before = Sequence({tokens.rbegin(), tokens.rend()}, vocab);
    DrivenSequence after = Sequence({tokens[i]}, vocab);
    const Transcript step = driver.Step(
        {{&before, static_cast<int>(i % 9) + 1}, {&sequence, 1}, {&after, 1}});
    drawn.push_back(step[1]);
    driver.Release(before);
    driver.Release(after);
  }
  ExpectSame(drawn, expected);
}

INSTANTIATE_TEST_SUITE_P(Families, CpuFamiliesTest,
                         testing::ValuesIn(Families()), [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (!std::isalnum(c)) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace penstock
