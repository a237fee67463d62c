#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {

// How often prompts that share system prompts find them cached, with the cache
// that a worker has and nothing else of it: each request matches, computes what
// is missing, publishes it and ends before the next comes.
struct CacheBenchOptions {
  int entries = 500;  // blocks of the pool
  int requests = 1000;
  double shared = 0.6;  // of the requests begin with a system prompt
  int system_prompts = 5;
  int system_tokens = 256;  // of a system prompt; others have as many of their
                            // own
  int tail_tokens = 32;     // of each request alone
  uint64_t seed = 1;
};

struct CacheBenchResult {
  int requests = 0;
  int hits = 0;  // requests that found one cached block or more
  int64_t blocks = 0;
  int64_t hit_blocks = 0;
  int64_t evicted = 0;
  // What a cache that forgets nothing would have found.
  int most_hits = 0;
  int64_t most_hit_blocks = 0;

  double hit_rate() const { return Share(hits, requests); }
  double block_hit_rate() const { return Share(hit_blocks, blocks); }

 private:
  static double Share(int64_t part, int64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / whole;
  }
};

// INVALID_ARGUMENT names the option: a share outside of [0, 1], a count below
// 1, a prompt that does not fit into the entries.
absl::StatusOr<CacheBenchResult> RunCacheBench(
    const CacheBenchOptions& options);

}  // namespace penstock
