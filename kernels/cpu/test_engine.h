#pragma once

#include <vector>

#include "absl/types/span.h"
#include "kernels/cpu/cpu_backend.h"

namespace penstock {

// Drives one CpuBackend by hand, for tests: lays plans out, waits for results.
// Owns the arena, which starts full of NaN patterns.
class TestEngine {
 public:
  // `options` lacks the arena, which gets `blocks` blocks. CHECKs that the
  // backend can be made.
  TestEngine(CpuBackendOptions options, int blocks);

  // Rows [first_row, first_row + rows) of a sequence whose pages start at
  // block `first_block`.
  struct Chunk {
    std::vector<TokenId> tokens;  // of the rows
    int first_position = 0;
    int first_block = 0;
    size_t first_sample = 0;  // rows from here on are sampled
    int top = 20;             // log-probabilities asked for
  };
  // Runs chunks of different sequences as one step; the samples in row order.
  std::vector<SampledToken> Step(const std::vector<Chunk>& chunks,
                                 std::vector<StepPlan::BlockCopy> copies = {});

  // One sequence in chunks of at most `chunk` tokens.
  std::vector<SampledToken> Prefill(Chunk whole, int chunk = 512);

  // Greedy tokens after a prompt.
  std::vector<TokenId> Generate(std::vector<TokenId> prompt, int count);

  CpuBackend& backend() { return *backend_; }
  absl::Span<uint8_t> arena() { return absl::MakeSpan(arena_); }

 private:
  std::vector<uint8_t> arena_;
  std::unique_ptr<CpuBackend> backend_;
};

}  // namespace penstock
