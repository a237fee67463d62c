#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/engine/sequence.h"

namespace penstock {

// The part of a Sequence that moves with its KV, as bytes: version, prompt
// length, all tokens, seed, text state. Little-endian, the same on every host.
// KV blocks and local bookkeeping do not move.
std::string SerializeState(const Sequence& sequence);

// Rebuilds a sequence from `state` for a request that arrived on its own leg.
// The state is hostile input: INVALID_ARGUMENT names the field that is out of
// bounds or contradicts the request (prompt, seed), UNIMPLEMENTED a version
// that this build does not know.
absl::StatusOr<std::unique_ptr<Sequence>> ParseState(
    absl::string_view state, const GenerateRequest& request, BlockHash root,
    const Tokenizer* tokenizer, int context_length);

}  // namespace penstock
