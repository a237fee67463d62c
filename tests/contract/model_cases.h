#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/id.h"

namespace penstock {

// The golden outputs of tests/data/cases that concern the forward pass; the
// README there says what the fields mean and how they were made. Each reader
// dies when its file is missing or malformed.

struct GenerationCase {
  std::string name;
  std::vector<TokenId> prompt;
  std::vector<TokenId> generated;
  std::vector<double> margins;  // best minus second log-probability, by step
  std::vector<std::vector<std::pair<TokenId, double>>> top5;  // by step
};
std::vector<GenerationCase> ReadGenerationCases(const std::string& folder);

struct ScoreCase {
  std::string name;
  std::vector<TokenId> ids;
  std::vector<double> logprobs;  // of ids[i + 1] after ids[0..i]
  double perplexity = 0;
};
std::vector<ScoreCase> ReadScoreCases(const std::string& folder);

// The residual stream, or the logits, of one short prompt.
struct LayerCase {
  std::vector<TokenId> ids;
  std::string at;
  std::vector<double> rms;          // by position
  std::vector<double> max_abs;      // by position
  std::vector<double> last_first8;  // at the last position
  std::vector<TokenId> argmax;      // of logits, by position
};
std::vector<LayerCase> ReadLayerCases(const std::string& folder);

}  // namespace penstock
