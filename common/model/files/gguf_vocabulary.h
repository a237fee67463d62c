#pragma once

#include "absl/status/statusor.h"
#include "common/model/files/gguf_reader.h"
#include "common/model/vocabulary.h"

namespace penstock {

// The vocabulary of a GGUF file (byte-level BPE, or SentencePiece BPE or
// unigram), consistent in itself: a kind for each token, no token twice, every
// merge made of tokens, a finite score for each token of SentencePiece, every
// special id within. Precondition: the number of tokens has been checked
// against the embedding's rows, which bounds it.
//
// Ends of generation are found by rule (FindStopTokens) from eos, eot and eom.
absl::StatusOr<Vocabulary> ReadGgufVocabulary(const GgufReader& reader);

}  // namespace penstock
