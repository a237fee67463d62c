#include "tests/contract/full_transcript.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace {

constexpr int kBlocks = 64;

// Written so that NaN counts as an error.
void Enlarge(double error, double& largest) {
  if (!(error <= largest)) largest = error;
}

}  // namespace

DrivenSequence FullSequence(std::vector<TokenId> tokens, int vocab_size) {
  DrivenSequence sequence;
  sequence.tokens = std::move(tokens);
  sequence.sampling = {.temperature = 0, .logprobs = vocab_size};
  return sequence;
}

Transcript FullTranscript(const BackendMaker& maker, const ModelFile& model,
                          const std::vector<TokenId>& tokens, int chunk) {
  ModelDriver driver(maker, model, kBlocks);
  DrivenSequence sequence = FullSequence(tokens, model.spec().vocab_size);
  return driver.Prefill(sequence, chunk, static_cast<int>(tokens.size()));
}

Transcript CrowdedTranscript(const BackendMaker& maker, const ModelFile& model,
                             const std::vector<TokenId>& tokens) {
  ModelDriver driver(maker, model, kBlocks);
  const int vocab = model.spec().vocab_size;
  DrivenSequence sequence = FullSequence(tokens, vocab);
  Transcript drawn;
  for (size_t i = 0; i < tokens.size(); ++i) {
    DrivenSequence before =
        FullSequence({tokens.rbegin(), tokens.rend()}, vocab);
    DrivenSequence after = FullSequence({tokens[i]}, vocab);
    const Transcript step = driver.Step(
        {{&before, static_cast<int>(i % 9) + 1}, {&sequence, 1}, {&after, 1}});
    drawn.push_back(step[1]);
    driver.Release(before);
    driver.Release(after);
  }
  return drawn;
}

double LogprobError(const SampledToken& drawn,
                    const std::vector<float>& logits) {
  EXPECT_EQ(drawn.logprobs.top.size(), logits.size());
  double sum = 0, largest = 0;
  for (float logit : logits) sum += std::exp(double{logit});
  for (const auto& [token, logprob] : drawn.logprobs.top) {
    Enlarge(std::abs(logprob - (logits[token] - std::log(sum))), largest);
  }
  return largest;
}

std::vector<double> LogprobErrors(const Transcript& drawn,
                                  const Transcript& expected) {
  EXPECT_EQ(drawn.size(), expected.size());
  std::vector<double> errors;
  for (size_t row = 0; row < drawn.size(); ++row) {
    std::vector<float> logprobs(expected[row].logprobs.top.size());
    for (const auto& [token, logprob] : expected[row].logprobs.top) {
      logprobs[token] = static_cast<float>(logprob);
    }
    const double error = LogprobError(drawn[row], logprobs);
    errors.push_back(std::isnan(error) ? INFINITY : error);
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

}  // namespace penstock
