#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "gtest/gtest.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/family_cases.h"
#include "tests/contract/full_transcript.h"

namespace penstock {
namespace {

constexpr char kFolder[] = PENSTOCK_TEST_DATA "/families/";
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
    return FullTranscript(maker, model, cases_.back().ids, chunk);
  }

  const std::vector<FamilyCase> cases_;
};

// What F16 pages cost: 11 bits of keys and values.
TEST_P(CpuFamiliesTest, LogProbabilitiesAreThoseOfTransformers) {
  const std::unique_ptr<ModelFile> model = Open();
  double largest = 0;
  for (const FamilyCase& golden : cases_) {
    const Transcript drawn = FullTranscript(MakeExactCpu(CpuPath::kAuto, 2),
                                            *model, golden.ids, kWhole);
    for (size_t i = 0; i < golden.positions.size(); ++i) {
      const double error =
          LogprobError(drawn[golden.positions[i]], golden.gguf_logits[i]);
      // Written so that NaN counts as an error.
      if (!(error <= largest)) largest = error;
    }
  }
  std::cout << absl::StreamFormat("%-18s %.1e\n", GetParam(), largest);
  EXPECT_LE(largest, 5e-3);
}

// Other weights, against the oracle with the same ones.
TEST_P(CpuFamiliesTest, ConvertedWeightsAreThoseOfTheOracle) {
  for (TensorType type :
       {TensorType::kQ8_0, TensorType::kQ4_1, TensorType::kBF16}) {
    const std::unique_ptr<ModelFile> model = Open({.weights = type});
    const Transcript ours = Run(MakeExactCpu(CpuPath::kAuto, 2), *model);
    const Transcript expected = Run(MakeOracle(), *model);
    EXPECT_LE(LogprobErrors(ours, expected).back(), 1e-2) << Traits(type).name;
  }
}

// 8 bits of each input. The median: in rows near a tie, another expert is
// chosen.
TEST_P(CpuFamiliesTest, Bfloat16WeightsTakeInputsInBfloat16) {
  const std::unique_ptr<ModelFile> model = Open({.weights = TensorType::kBF16});
  const Transcript ours = Run(MakeCpu(CpuPath::kAuto), *model);
  const std::vector<double> errors =
      LogprobErrors(ours, Run(MakeOracle(), *model));
  std::cout << absl::StreamFormat("%-18s %.1e\n", GetParam(),
                                  errors[errors.size() / 2]);
  EXPECT_LE(errors[errors.size() / 2], 3e-2);
  ExpectSame(Run(MakeCpu(CpuPath::kScalar), *model, 7), ours);
}

TEST_P(CpuFamiliesTest, PathsThreadsAndChunksChangeNoBit) {
  const std::unique_ptr<ModelFile> model = Open({.weights = TensorType::kQ8_0});
  const Transcript expected = Run(MakeExactCpu(CpuPath::kAuto, 2), *model);
  for (CpuPath path : CpuPaths()) {
    SCOPED_TRACE(CpuPathName(path));
    ExpectSame(Run(MakeExactCpu(path, 2), *model), expected);
  }
  for (int threads : {1, 3}) {
    SCOPED_TRACE(threads);
    ExpectSame(Run(MakeExactCpu(CpuPath::kAuto, threads), *model), expected);
  }
  for (int chunk : {1, 7}) {
    SCOPED_TRACE(chunk);
    ExpectSame(Run(MakeExactCpu(CpuPath::kAuto, 2), *model, chunk), expected);
  }
}

TEST_P(CpuFamiliesTest, NeighboursChangeNoBit) {
  const std::unique_ptr<ModelFile> model = Open({.weights = TensorType::kQ8_0});
  const BackendMaker maker = MakeExactCpu(CpuPath::kAuto, 2);
  ExpectSame(CrowdedTranscript(maker, *model, cases_.back().ids),
             Run(maker, *model));
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
