#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/id.h"
#include "common/model/block_ref.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"

namespace penstock {

// What a draw depends on beside the logits: the tokens so far and what a
// stateful sampler carried over. Owned by the sequence; the backend reads it
// while a step is in flight, and the engine changes it between steps only.
struct SampleHistory {
  std::vector<TokenId> tokens;  // prompt and answer
  int prompt_tokens = 0;
  // Tokens that end a run of DryParams: sorted.
  std::vector<TokenId> dry_breakers;
  float mirostat_mu = 0;  // the draw's new value comes back in SampledToken
};

// One row to sample: which token row's logits, and how. Several may draw from
// one row: n answers of a prompt.
struct SampleRow {
  int32_t row = 0;  // index into StepPlan::tokens
  SamplingParams params;
  // Null where no stage of `params` looks back.
  std::shared_ptr<const SampleHistory> history = nullptr;
  // Tokens that must not be drawn now (stop tokens before min_tokens): sorted.
  std::vector<TokenId> banned = {};
  uint32_t sample = 0;    // index among n samples of a request
  uint64_t position = 0;  // index of the token being drawn: counts prompt too
};

// A row whose logits are only compared: the log-probability of `token`, which
// is known, and of the best `best`.
struct ScoreRow {
  int32_t row = 0;
  TokenId token = 0;
  int best = 0;
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
  std::vector<ScoreRow> scores;
  // Blocks to copy before the pass (copy-on-write): from -> to, whole blocks.
  struct BlockCopy {
    BlockIndex from = -1;
    BlockIndex to = -1;
  };
  std::vector<BlockCopy> copies;

  // Empties it; keeps the memory of its lists.
  void Clear() {
    step = 0;
    tokens.clear();
    positions.clear();
    sequences.clear();
    block_table.clear();
    samples.clear();
    scores.clear();
    copies.clear();
  }
};

struct SampledToken {
  TokenId token = 0;
  TokenLogprobs logprobs = {};  // filled when the row asked for them
  float mirostat_mu = 0;        // with MirostatParams: for the next draw
  // Of this draw alone: INVALID_ARGUMENT when nothing may be drawn.
  absl::Status status = absl::OkStatus();
};

struct StepResult {
  uint64_t step = 0;
  absl::Status status;                // of the whole step
  std::vector<SampledToken> sampled;  // one for each of StepPlan::samples
  std::vector<TokenLogprobs> scored;  // one for each of StepPlan::scores
  // The step's plan, given back for the memory of its lists: tables of long
  // contexts are the largest thing that a step would allocate.
  StepPlan plan;
};

// KV of layers [0, layers_done) is complete for every row of the step.
struct StepProgress {
  uint64_t step = 0;
  int layers_done = 0;
};

}  // namespace penstock
