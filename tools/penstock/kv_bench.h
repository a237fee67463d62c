#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {

// One request's tokens.
struct KvLength {
  int prompt = 1;
  int output = 1;
};

// How much memory requests take while they generate, one step for each token of
// output, by how it is allocated.
struct KvFragmentation {
  struct Scheme {
    std::string name;
    int64_t reserved = 0;  // token slots, summed over steps
  };
  int64_t steps = 0;
  int64_t used = 0;  // token slots with KV in them, summed over steps
  // Blocks as the pool's, then contiguous memory for a whole life: of the exact
  // length, were it known; of the next power of two; of the longest request.
  std::vector<Scheme> schemes;
};

// `longest`: tokens that a request may have in all; 0: as many as the longest
// of these has. Longer ones count as so long. INVALID_ARGUMENT: no lengths.
absl::StatusOr<KvFragmentation> MeasureFragmentation(
    absl::Span<const KvLength> lengths, int longest);

// Answers to one prompt that go on together.
struct KvSharingOptions {
  KvLength length = {1000, 200};
  int answers = 4;
  bool beams = false;  // of a beam search; else samples
};

struct KvSharing {
  int64_t peak_blocks = 0;      // of the pool, in use at a time
  int64_t separate_blocks = 0;  // that as many requests take on their own
};

// Runs the production cores over the simulated model, on one worker with both
// roles, and counts its pool after each event. INVALID_ARGUMENT names what is
// out of range.
absl::StatusOr<KvSharing> MeasureSharing(const KvSharingOptions& options);

}  // namespace penstock
