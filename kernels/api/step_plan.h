#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/block_ref.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"

namespace penstock {

// One row to sample: which token row's logits, and how.
struct SampleRow {
  int32_t row = 0;  // index into StepPlan::tokens
  SamplingParams params;
  uint32_t sample = 0;    // index among n samples of a request
  uint64_t position = 0;  // index of the token being drawn: counts prompt too
};

// The rows of one sequence in a step: a prefill chunk, or one decode token.
// All are written to the sequence's pages before any of its rows attends.
struct SequenceRows {
  int32_t first_row = 0;  // rows [first_row, first_row + rows)
  int32_t rows = 0;
  int32_t first_block = 0;  // into StepPlan::block_table
  int32_t blocks = 0;       // enough for every position of the rows
};

// One forward pass, flat. Made by the engine, read by the backend, which keeps
// it until the step's result is polled.
struct StepPlan {
  uint64_t step = 0;
  std::vector<TokenId> tokens;     // [rows]
  std::vector<int32_t> positions;  // [rows], consecutive within a sequence
  std::vector<SequenceRows> sequences;
  std::vector<BlockIndex> block_table;
  std::vector<SampleRow> samples;
  // Blocks to copy before the pass (copy-on-write): from -> to, whole blocks.
  struct BlockCopy {
    BlockIndex from = -1;
    BlockIndex to = -1;
  };
  std::vector<BlockCopy> copies;
};

struct SampledToken {
  TokenId token = 0;
  TokenLogprobs logprobs;  // filled when the row asked for them
};

struct StepResult {
  uint64_t step = 0;
  absl::Status status;                // of the whole step
  std::vector<SampledToken> sampled;  // one for each of StepPlan::samples
};

// KV of layers [0, layers_done) is complete for every row of the step.
struct StepProgress {
  uint64_t step = 0;
  int layers_done = 0;
};

}  // namespace penstock
