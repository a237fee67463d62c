#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace penstock {

// Tokens that one hash id of a trace stands for.
inline constexpr int kTraceBlockTokens = 512;

// One request of a recorded load.
struct TraceRequest {
  absl::Duration at;  // from the trace's first request
  int input_tokens = 1;
  int output_tokens = 1;
  // Of each run of kTraceBlockTokens of the prompt; the last may be partial.
  // Equal ids have equal tokens before and in them. Empty: nothing is known,
  // the prompt shares nothing with another.
  std::vector<uint64_t> hashes;
};

// A trace from its text, in order of time: lines of {"timestamp": ms,
// "input_length", "output_length", "hash_ids"}, or a CSV file with the header
// TIMESTAMP,ContextTokens,GeneratedTokens. Lengths of 0 count as 1.
// INVALID_ARGUMENT names the first line that is neither, a number out of range,
// or a prompt with another number of hash ids than it has runs.
absl::StatusOr<std::vector<TraceRequest>> ParseTrace(absl::string_view text);

// The same of a file. NOT_FOUND or INVALID_ARGUMENT name it.
absl::StatusOr<std::vector<TraceRequest>> ReadTraceFile(
    const std::string& path);

}  // namespace penstock
