#include "tests/contract/model_cases.h"

#include <fstream>

#include "common/base/check.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

std::vector<nlohmann::json> ReadLines(const std::string& path) {
  std::ifstream file(path);
  CHECK(file.good()) << path << " is missing";
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

}  // namespace

std::vector<GenerationCase> ReadGenerationCases(const std::string& folder) {
  std::vector<GenerationCase> cases;
  for (const auto& line : ReadLines(folder + "/generation.jsonl")) {
    GenerationCase read;
    line.at("name").get_to(read.name);
    line.at("prompt_ids").get_to(read.prompt);
    line.at("gen_ids").get_to(read.generated);
    line.at("margins").get_to(read.margins);
    line.at("top5").get_to(read.top5);
    cases.push_back(std::move(read));
  }
  return cases;
}

std::vector<ScoreCase> ReadScoreCases(const std::string& folder) {
  std::vector<ScoreCase> cases;
  for (const auto& line : ReadLines(folder + "/scores.jsonl")) {
    ScoreCase read;
    line.at("name").get_to(read.name);
    line.at("ids").get_to(read.ids);
    line.at("logprobs").get_to(read.logprobs);
    line.at("perplexity").get_to(read.perplexity);
    cases.push_back(std::move(read));
  }
  return cases;
}

std::vector<LayerCase> ReadLayerCases(const std::string& folder) {
  std::vector<LayerCase> cases;
  for (const auto& line : ReadLines(folder + "/layers.jsonl")) {
    LayerCase read;
    line.at("ids").get_to(read.ids);
    line.at("at").get_to(read.at);
    line.at("rms").get_to(read.rms);
    line.at("max_abs").get_to(read.max_abs);
    line.at("last_first8").get_to(read.last_first8);
    if (line.contains("argmax")) line.at("argmax").get_to(read.argmax);
    cases.push_back(std::move(read));
  }
  return cases;
}

}  // namespace penstock
