#pragma once

#include <vector>

#include "common/model/files/model_file.h"
#include "tests/contract/model_driver.h"
#include "tests/contract/transcript.h"

namespace penstock {

// A sequence whose draws come with the log-probability of every token.
DrivenSequence FullSequence(std::vector<TokenId> tokens, int vocab_size);

// Every row of `tokens` drawn so, by a backend of its own in steps of `chunk`
// rows.
Transcript FullTranscript(const BackendMaker& maker, const ModelFile& model,
                          const std::vector<TokenId>& tokens, int chunk);

// The same, a row a step beside two other sequences, one of them a prompt.
Transcript CrowdedTranscript(const BackendMaker& maker, const ModelFile& model,
                             const std::vector<TokenId>& tokens);

// The largest error of a log-probability; NaN where one is.
double LogprobError(const SampledToken& drawn,
                    const std::vector<float>& logits);
// Of each row, ascending.
std::vector<double> LogprobErrors(const Transcript& drawn,
                                  const Transcript& expected);

}  // namespace penstock
