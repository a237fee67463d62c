#pragma once

#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/vocabulary.h"

namespace penstock {

// Fills in which tokens end a generation: eos, the ids that the file names
// (`named`; those of -1 are left out), then control tokens that are spelled as
// end-of-text or end-of-turn markers. Precondition: one kind for each token,
// and every id is -1 or within.
void FindStopTokens(absl::Span<const TokenId> named, Vocabulary& vocabulary);

}  // namespace penstock
