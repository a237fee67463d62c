#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/contract/backend_makers.h"
#include "tests/contract/family_cases.h"
#include "tests/contract/model_driver.h"

namespace penstock {
namespace {

constexpr char kFolder[] = PENSTOCK_TEST_DATA "/families/";
constexpr int kBlocks = 16;
constexpr int kWhole = 512;  // rows: every prompt in one step
constexpr double kLimit = 1e-4;

// Each a folder, with the same model in a GGUF file.
constexpr const char* kFamilies[] = {"deepseek-v2",   "deepseek-v2-lite",
                                     "deepseek-v3",   "gemma2",
                                     "gemma3",        "granite",
                                     "granitemoe",    "llama-biased",
                                     "llama-dynamic", "llama-linear",
                                     "llama-yarn",    "llama2",
                                     "llama3.1",      "mistral",
                                     "mixtral",       "olmo2",
                                     "olmoe",         "phi3",
                                     "phi3-longrope", "phi3-shortrope",
                                     "qwen2",         "qwen3",
                                     "qwen3moe",      "smollm2",
                                     "smollm3",       "tinyllama"};

// Logits [vocab] of every position, in order; written on the backend's thread,
// read after the step's result.
using Rows = std::vector<std::vector<float>>;

double LargestError(const Rows& seen, const std::vector<int>& positions,
                    const Rows& expected) {
  double largest = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const std::vector<float>& row = seen.at(positions[i]);
    EXPECT_EQ(row.size(), expected[i].size());
    for (size_t token = 0; token < expected[i].size(); ++token) {
      const double error = std::abs(double{row[token]} - expected[i][token]);
      // Written so that NaN counts as an error.
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

// The largest error of a logit over the family's prompts, each computed in
// steps of `chunk` rows; NaN where one is, or when the model is not read.
double FamilyError(const std::string& path, const std::string& family,
                   bool gguf, int chunk) {
  absl::StatusOr<std::unique_ptr<ModelFile>> model = OpenModelFile(path);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  if (!model.ok()) return std::nan("");

  Rows seen;
  OracleObserver observer;
  observer.logits = [&seen](int32_t, absl::Span<const float> logits) {
    seen.emplace_back(logits.begin(), logits.end());
  };
  ModelDriver driver(MakeOracle(observer), **model, kBlocks);
  double largest = 0;
  for (const FamilyCase& golden : ReadFamilyCases(kFolder + family)) {
    seen.clear();
    DrivenSequence sequence;
    sequence.tokens = golden.ids;
    driver.Prefill(sequence, chunk, static_cast<int>(golden.ids.size()));
    driver.Release(sequence);
    EXPECT_EQ(seen.size(), golden.ids.size());
    const double error = LargestError(
        seen, golden.positions, gguf ? golden.gguf_logits : golden.logits);
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

// Of the family's GGUF file, or of its Hugging Face folder.
double FileError(const std::string& family, bool gguf, int chunk) {
  const std::string path = kFolder + family + (gguf ? "/model.gguf" : "");
  return FamilyError(path, family, gguf, chunk);
}

TEST(FamiliesTest, LogitsAreThoseOfTransformers) {
  std::cout << "largest error of a logit\n";
  std::cout << absl::StreamFormat("%-18s %-12s %s\n", "family", "safetensors",
                                  "GGUF");
  for (const std::string family : kFamilies) {
    const double folder = FileError(family, /*gguf=*/false, kWhole);
    const double gguf = FileError(family, /*gguf=*/true, kWhole);
    std::cout << absl::StreamFormat("%-18s %-12.1e %.1e\n", family, folder,
                                    gguf);
    EXPECT_LE(folder, kLimit) << family;
    EXPECT_LE(gguf, kLimit) << family;
  }
}

// What a chunk reads of earlier ones comes from the pages.
TEST(FamiliesTest, LogitsDoNotDependOnTheChunks) {
  for (const std::string family : kFamilies) {
    EXPECT_LE(FileError(family, /*gguf=*/false, 7), kLimit) << family;
  }
}

// config.json as transformers before version 5 wrote it, where there is one.
TEST(FamiliesTest, OldConfigurationsMeanTheSame) {
  namespace fs = std::filesystem;
  int run = 0;
  for (const std::string family : kFamilies) {
    if (!fs::exists(kFolder + family + "/config_old.json")) continue;
    const fs::path copy = fs::path(testing::TempDir()) / ("old-" + family);
    fs::remove_all(copy);
    fs::copy(kFolder + family, copy);
    fs::rename(copy / "config_old.json", copy / "config.json");
    EXPECT_LE(FamilyError(copy.string(), family, /*gguf=*/false, kWhole),
              kLimit)
        << family;
    fs::remove_all(copy);
    ++run;
  }
  EXPECT_EQ(run, 10);
}

TEST(FamiliesTest, NoFamilyIsLeftOut) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (!std::filesystem::exists(entry.path() / "expected.json")) continue;
    const std::string name = entry.path().filename().string();
    EXPECT_EQ(std::count(std::begin(kFamilies), std::end(kFamilies), name), 1)
        << name;
  }
}

}  // namespace
}  // namespace penstock
