#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/files/model_file.h"
#include "kernels/api/arena.h"
#include "kernels/api/backend.h"
#include "tests/contract/bell.h"

namespace penstock {

// How to make one kind of backend.
struct BackendMaker {
  struct Setup {
    const ModelFile* model = nullptr;
    Arena arena;
    std::function<void()> wake;
    int max_rows = 512;
    int max_sequences = 32;
  };
  std::string name;  // letters, digits and underscores
  KvType kv_type = KvType::kF16;
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(const Setup&)> make;
};

// One token sequence as a test drives it. `tokens` is what is known of it: the
// prompt, then forced or drawn tokens.
struct DrivenSequence {
  std::vector<TokenId> tokens;
  int computed = 0;  // leading tokens whose KV is in the blocks
  std::vector<BlockIndex> blocks;
  SamplingParams sampling = {.temperature = 0, .logprobs = 5};
  uint32_t sample = 0;
};

// The share of one sequence in a step.
struct StepPart {
  DrivenSequence* sequence = nullptr;
  int rows = 1;
  int sampled = 1;  // so many of its last rows
};

// Drives a backend over an arena of its own, without an engine: hands out
// blocks in a scrambled order, builds plans, waits for results. The arena
// starts as bytes 0xFF, which are NaN in every page type. One thread.
class ModelDriver {
 public:
  // Dies when the backend cannot be made. `model` outlives the driver.
  ModelDriver(const BackendMaker& maker, const ModelFile& model, int blocks);

  Backend& backend() { return *backend_; }
  absl::Span<uint8_t> block(BlockIndex index);
  int free_blocks() const { return static_cast<int>(free_.size()); }

  BlockIndex Allocate();
  // Gives the sequence's blocks back, poisoned, and forgets what it computed.
  void Release(DrivenSequence& sequence);

  // Submits a plan, waits for its result and returns every event.
  std::vector<BackendEvent> RunForEvents(StepPlan plan);
  StepResult Run(StepPlan plan);

  // The plan that computes the next rows of each part; allocates blocks.
  StepPlan Plan(const std::vector<StepPart>& parts);
  // Runs that plan and counts its rows as computed. Results are in the order
  // of parts. Dies when the step fails.
  std::vector<SampledToken> Step(const std::vector<StepPart>& parts);

  // Computes the sequence up to its last known token in chunks, and returns
  // what the last `sampled` rows drew.
  std::vector<SampledToken> Prefill(DrivenSequence& sequence, int chunk,
                                    int sampled = 1);
  // Decodes `count` tokens after Prefill drew `next`; each drawn token joins
  // the sequence. Returns `next` and what was drawn after it: count + 1.
  std::vector<SampledToken> Decode(DrivenSequence& sequence, SampledToken next,
                                   int count);

 private:
  std::vector<uint8_t> memory_;
  uint64_t block_bytes_;
  std::vector<BlockIndex> free_;  // next at the back
  uint64_t steps_ = 0;
  Bell bell_;
  std::unique_ptr<Backend> backend_;  // last: rings the bell
};

}  // namespace penstock
