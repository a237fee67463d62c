#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/text/tokenizer.h"

namespace penstock {

// Ordinary tokens whose bytes hold at least one of `needles`, ascending. Work
// is one pass over the vocabulary's bytes, and for each byte that begins a
// needle a comparison with those that it begins. Precondition: no needle is
// empty.
std::vector<TokenId> TokensThatHold(const Tokenizer& tokenizer,
                                    absl::Span<const std::string> needles);

}  // namespace penstock
