#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "common/model/token_frame.h"

namespace penstock {

// The handoff document, sent with Commit: what decode must verify before it
// makes a token from KV that it did not compute.
struct KvManifest {
  LayoutId layout;
  ContentId content;
  NumericsId numerics;
  int prompt_tokens = 0;  // with those of the answer that the KV goes on after
  // Chained hash of every full block of them, cached ones included: equal chains
  // mean equal tokens in equal order.
  std::vector<BlockHash> block_hashes;
  // Blocks that travelled: index within the prompt, and checksum of its page.
  struct MovedBlock {
    int prompt_block = 0;
    uint64_t checksum = 0;
  };
  std::vector<MovedBlock> moved;
  uint64_t bytes_moved = 0;
  int chunks = 0;  // ChunkDone messages that went before
  // Request state after the first token: a serialised Sequence (see
  // common/engine/sequence_state.h). The first token travels inside it.
  std::string state;
  RequestTimings timings;
  int cached_tokens = 0;  // prompt tokens that prefill found cached
};

}  // namespace penstock
