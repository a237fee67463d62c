#include "kernels/host/step_driver.h"

#include <utility>
#include <variant>

#include "common/model/kv_layout.h"

namespace penstock {
namespace {

constexpr int kTokens = 32;  // every vocabulary has so many

}  // namespace

void AddProbeRows(StepPlan& plan, BlockIndex first_block, int behind,
                  int rows) {
  SequenceRows part;
  part.first_row = static_cast<int32_t>(plan.tokens.size());
  part.rows = rows;
  part.first_block = static_cast<int32_t>(plan.block_table.size());
  part.blocks = BlocksFor(behind + rows);
  for (int i = 0; i < part.blocks; ++i) {
    plan.block_table.push_back(first_block + i);
  }
  for (int position = behind; position < behind + rows; ++position) {
    plan.tokens.push_back(position % kTokens);
    plan.positions.push_back(position);
  }
  plan.sequences.push_back(part);
}

void SampleLastRow(StepPlan& plan) {
  SampleRow sample;
  sample.row = static_cast<int32_t>(plan.tokens.size()) - 1;
  sample.params.temperature = 0;
  plan.samples.push_back(std::move(sample));
}

void StepDriver::Ring() {
  std::lock_guard<std::mutex> lock(mutex_);
  ringing_ = true;
  rung_.notify_one();
}

absl::Status StepDriver::Run(Backend& backend, StepPlan plan) {
  backend.Submit(std::move(plan));
  for (;;) {
    while (std::optional<BackendEvent> event = backend.Poll()) {
      if (const auto* result = std::get_if<StepResult>(&*event)) {
        return result->status;
      }
    }
    std::unique_lock<std::mutex> lock(mutex_);
    rung_.wait(lock, [this] { return ringing_; });
    ringing_ = false;
  }
}

}  // namespace penstock
