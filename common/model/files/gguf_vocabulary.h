#pragma once

#include "absl/status/statusor.h"
#include "common/model/files/gguf_reader.h"
#include "common/model/vocabulary.h"

namespace penstock {

// The byte-level BPE vocabulary of a GGUF file, consistent in itself: a kind
// for each token, no token twice, every merge made of tokens, every special id
// within. Precondition: the number of tokens has been checked against the
// embedding's rows, which bounds it.
//
// Ends of generation are found by rule: the ids that the file names (eos, eot,
// eom), then control tokens spelled as end-of-text or end-of-turn markers.
absl::StatusOr<Vocabulary> ReadGgufVocabulary(const GgufReader& reader);

}  // namespace penstock
