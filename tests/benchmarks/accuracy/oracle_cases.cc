#include "tests/benchmarks/accuracy/oracle_cases.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/base/check.h"
#include "nlohmann/json.hpp"
#include "tests/contract/backend_makers.h"
#include "tests/contract/case_accuracy.h"
#include "tests/contract/model_cases.h"
#include "tests/contract/model_driver.h"

namespace penstock {
namespace {

constexpr int kChunk = 512;
constexpr size_t kAtOnce = 32;  // answers in a step, as the driver allows

// A greedy answer in the making.
struct Answer {
  DrivenSequence sequence = {};
  size_t most = 0;  // tokens
  std::vector<SampledToken> drawn = {};

  bool Ended(const std::vector<TokenId>& stops) const {
    return drawn.size() == most ||
           std::count(stops.begin(), stops.end(), drawn.back().token) > 0;
  }
};

// The next token of each answer that has not ended; whether there was one.
bool Advance(ModelDriver& driver, const std::vector<TokenId>& stops,
             std::vector<Answer>& answers) {
  std::vector<StepPart> parts;
  std::vector<Answer*> running;
  for (Answer& answer : answers) {
    if (answer.Ended(stops)) continue;
    answer.sequence.tokens.push_back(answer.drawn.back().token);
    parts.push_back({.sequence = &answer.sequence});
    running.push_back(&answer);
  }
  if (parts.empty()) return false;
  const std::vector<SampledToken> drawn = driver.Step(parts);
  for (size_t i = 0; i < drawn.size(); ++i) {
    running[i]->drawn.push_back(drawn[i]);
  }
  return true;
}

nlohmann::json LineOf(const GenerationCase& asked, const Answer& answer) {
  nlohmann::json line = {{"name", asked.name}, {"prompt_ids", asked.prompt}};
  for (const SampledToken& token : answer.drawn) {
    const auto& top = token.logprobs.top;
    line["gen_ids"].push_back(token.token);
    line["margins"].push_back(top[0].second - top[1].second);
    line["top5"].push_back(top);
  }
  return line;
}

void WriteGenerations(ModelDriver& driver, const std::vector<TokenId>& stops,
                      const std::vector<GenerationCase>& asked,
                      std::ofstream& file) {
  std::vector<Answer> answers;
  for (const GenerationCase& one : asked) {
    answers.push_back({.most = one.generated.size()});
    answers.back().sequence.tokens = one.prompt;
    answers.back().drawn = driver.Prefill(answers.back().sequence, kChunk);
  }
  while (Advance(driver, stops, answers)) {
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    file << LineOf(asked[i], answers[i]).dump() << "\n";
    driver.Release(answers[i].sequence);
  }
}

int BlocksNeeded(const std::vector<GenerationCase>& asked) {
  int blocks = 0;
  for (const GenerationCase& one : asked) {
    blocks +=
        BlocksFor(static_cast<int>(one.prompt.size() + one.generated.size()));
  }
  return blocks;
}

}  // namespace

void WriteOracleCases(const ModelFile& model, const std::string& from,
                      const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::vector<GenerationCase> asked = ReadGenerationCases(from);
  CHECK(asked.size() <= kAtOnce);
  ModelDriver driver(MakeOracle(), model, BlocksNeeded(asked));
  std::ofstream scores(folder + "/scores.jsonl");
  for (const ScoreCase& text : ReadScoreCases(from)) {
    const std::vector<double> logprobs = ScoreText(driver, text);
    scores << nlohmann::json{{"name", text.name},
                             {"ids", text.ids},
                             {"logprobs", logprobs},
                             {"perplexity", Perplexity(logprobs)}}
                  .dump()
           << "\n";
  }
  std::ofstream generations(folder + "/generation.jsonl");
  WriteGenerations(driver, model.vocabulary().stop_tokens, asked, generations);
  CHECK(scores.flush().good() && generations.flush().good())
      << folder << " cannot be written";
}

}  // namespace penstock
