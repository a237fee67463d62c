#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/model/generate_request.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {

// A history that grows: SimModel::StateOf of it, a token at a time.
class TrueHistory {
 public:
  void Append(TokenId token);
  uint64_t state() const { return state_; }
  int length() const { return length_; }

 private:
  uint64_t state_ = 0;
  int length_ = 0;
};

// One answer, worked out from tokens alone.
struct TrueAnswer {
  std::vector<TokenId> tokens;
  std::string text;
  FinishReason finish = FinishReason::kNone;
  double mean_logprob = 0;  // if asked for
};

// Sample `sample` of a request without beams: SimModel's tokens up to the first
// that completes a stop string, found by searching the whole text each time.
TrueAnswer TrueSample(const GenerateRequest& request, int sample,
                      bool with_logprob);

// What a search over all continuations of all beams finds: the best n, best
// first. Knows nothing of pages, workers or steps.
std::vector<TrueAnswer> TrueBeams(const GenerateRequest& request);

// Holds what a client was shown against the truth, as it comes.
// Single-threaded; owned by whoever watches the client, which outlives it.
class AnswerTruth {
 public:
  explicit AnswerTruth(const SimClient* client) : client_(client) {}

  // Empty, or how what came since the last call is not the truth.
  std::string CheckNew();
  // Once, after the request ended.
  std::string CheckEnd() const;

 private:
  struct Sample {
    TrueAnswer answer;
    TrueHistory history;  // the prompt and what was checked
    std::vector<TokenId> draws;
    size_t checked = 0;
  };

  std::string CheckPrompt();
  std::string CheckSample(int sample, const std::vector<TokenId>& tokens);
  std::string CheckDeferred() const;
  std::string CheckUsage() const;

  const SimClient* client_;
  std::map<int, Sample> samples_;
  size_t prompt_checked_ = 0;
  TrueHistory prompt_;
};

}  // namespace penstock
