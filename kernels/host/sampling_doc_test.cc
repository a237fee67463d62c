// The examples of docs/sampling.md, drawn.

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "kernels/host/sampler.h"

namespace penstock {
namespace {

const std::vector<float> kLogits = {3.0f, 2.5f, 2.0f, 1.0f, 0.0f, -1.0f};

struct Example {
  std::string fields;
  std::vector<double> percent;
};

// Lines "| `fields` | 12 | ... |".
std::vector<Example> ReadExamples() {
  std::ifstream file(PENSTOCK_TEST_DATA "/../../docs/sampling.md");
  EXPECT_TRUE(file.is_open());
  std::vector<Example> examples;
  std::string line;
  while (std::getline(file, line) && line != "## Examples") {
  }
  while (std::getline(file, line)) {
    if (line.rfind("| `", 0) != 0) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    Example example;
    example.fields = cells[1];
    absl::StripAsciiWhitespace(&example.fields);
    example.fields = example.fields.substr(1, example.fields.size() - 2);
    for (size_t i = 2; i < 2 + kLogits.size(); ++i) {
      double percent = 0;
      EXPECT_TRUE(absl::SimpleAtod(cells[i], &percent)) << line;
      example.percent.push_back(percent);
    }
    examples.push_back(example);
  }
  return examples;
}

std::vector<SamplerStage> Stages(absl::string_view names) {
  const std::map<std::string, SamplerStage> known = {
      {"temperature", SamplerStage::kTemperature},
      {"top_p", SamplerStage::kTopP}};
  std::vector<SamplerStage> stages;
  for (const std::string& name :
       std::vector<std::string>(absl::StrSplit(names, ','))) {
    EXPECT_EQ(known.count(name), 1u) << name;
    stages.push_back(known.at(name));
  }
  return stages;
}

SampleRow RowOf(absl::string_view fields) {
  SampleRow row;
  SamplingParams& p = row.params;
  for (absl::string_view field : absl::StrSplit(fields, ' ')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    if (parts.first == "stages") {
      p.stages = Stages(parts.second);
      continue;
    }
    float value = 0;
    EXPECT_TRUE(absl::SimpleAtof(parts.second, &value)) << field;
    std::map<std::string, float*> floats = {
        {"temperature", &p.temperature},
        {"top_p", &p.top_p},
        {"min_p", &p.min_p},
        {"typical_p", &p.typical_p},
        {"top_n_sigma", &p.top_n_sigma},
        {"xtc_probability", &p.xtc.probability},
        {"xtc_threshold", &p.xtc.threshold},
        {"repetition_penalty", &p.penalties.repetition},
        {"frequency_penalty", &p.penalties.frequency},
        {"presence_penalty", &p.penalties.presence},
        {"dry_multiplier", &p.dry.multiplier},
        {"mirostat_tau", &p.mirostat.tau}};
    if (auto it = floats.find(parts.first); it != floats.end()) {
      *it->second = value;
    } else if (parts.first == "top_k") {
      p.top_k = static_cast<int>(value);
    } else {
      EXPECT_EQ(parts.first, "mirostat");
      p.mirostat.on = value != 0;
    }
  }
  auto history = std::make_shared<SampleHistory>();
  history->tokens = {3, 0, 1, 3, 0};
  history->prompt_tokens = 3;
  history->mirostat_mu = 2 * p.mirostat.tau;
  row.history = history;
  return row;
}

TEST(SamplingDocTest, ExamplesAreWhatIsDrawn) {
  const std::vector<Example> examples = ReadExamples();
  EXPECT_GE(examples.size(), 16u);
  for (const Example& example : examples) {
    SCOPED_TRACE(example.fields);
    SampleRow row = RowOf(example.fields);
    constexpr int kDraws = 100000;
    std::vector<int> counts(kLogits.size());
    Sampler sampler;
    for (int i = 0; i < kDraws; ++i) {
      row.position = i;
      const auto sampled = sampler.Sample(kLogits, row);
      ASSERT_TRUE(sampled.ok());
      ++counts[sampled->token];
    }
    for (size_t id = 0; id < counts.size(); ++id) {
      // Half of the last digit, and over three standard deviations.
      EXPECT_NEAR(100.0 * counts[id] / kDraws, example.percent[id], 1.0)
          << "token " << id;
    }
  }
}

}  // namespace
}  // namespace penstock
