#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock {

struct SseLoad {
  int port = 0;  // on 127.0.0.1
  std::string model;
  int streams = 0;   // at a time, each a connection that is kept
  int requests = 0;  // in all
  int tokens = 0;    // of each answer
  int prompt_chars = 0;
};

struct SseResult {
  int64_t tokens = 0;
  double seconds = 0;
  std::vector<double> first_token_ms;  // of each request
};

// Completions with "stream": true over plain sockets, one thread, as little
// work a token as can be: the client must not be what is measured. Every answer
// must have its tokens and [DONE]. UNAVAILABLE says what came instead.
absl::StatusOr<SseResult> RunSseLoad(const SseLoad& load);

}  // namespace penstock
