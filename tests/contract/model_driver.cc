#include "tests/contract/model_driver.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/env/random.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

constexpr uint8_t kPoison = 0xff;
constexpr size_t kArenaAlignment = 4096;

}  // namespace

ModelDriver::ModelDriver(const BackendMaker& maker, const ModelFile& model,
                         int blocks)
    : block_bytes_(KvLayout::For(model.spec(), maker.kv_type).block_bytes()) {
  const size_t bytes = block_bytes_ * blocks;
  memory_.assign(bytes + kArenaAlignment, kPoison);
  const size_t skip =
      kArenaAlignment -
      reinterpret_cast<uintptr_t>(memory_.data()) % kArenaAlignment;
  const Arena arena = {.bytes = absl::MakeSpan(memory_).subspan(skip, bytes)};
  absl::StatusOr<std::unique_ptr<Backend>> backend = maker.make(
      {.model = &model, .arena = arena, .wake = [this] { bell_.Ring(); }});
  CHECK(backend.ok()) << backend.status().ToString();
  backend_ = *std::move(backend);
  CHECK(backend_->kv_layout().block_bytes() == block_bytes_);

  for (int i = 0; i < blocks; ++i) free_.push_back(i);
  SeededRandom random(blocks);
  for (int i = blocks - 1; i > 0; --i) {
    std::swap(free_[i], free_[random.Below(i + 1)]);
  }
}

absl::Span<uint8_t> ModelDriver::block(BlockIndex index) {
  const size_t skip =
      kArenaAlignment -
      reinterpret_cast<uintptr_t>(memory_.data()) % kArenaAlignment;
  return absl::MakeSpan(memory_).subspan(skip + index * block_bytes_,
                                         block_bytes_);
}

BlockIndex ModelDriver::Allocate() {
  CHECK(!free_.empty()) << "the test's arena is too small";
  const BlockIndex index = free_.back();
  free_.pop_back();
  return index;
}

void ModelDriver::Release(DrivenSequence& sequence) {
  for (BlockIndex index : sequence.blocks) {
    std::memset(block(index).data(), kPoison, block_bytes_);
    free_.insert(free_.begin(), index);  // the next sequence gets others
  }
  sequence.blocks.clear();
  sequence.computed = 0;
}

std::vector<BackendEvent> ModelDriver::RunForEvents(StepPlan plan) {
  plan.step = ++steps_;
  backend_->Submit(std::move(plan));
  std::vector<BackendEvent> events;
  for (;;) {
    bell_.Wait();
    while (std::optional<BackendEvent> event = backend_->Poll()) {
      events.push_back(*std::move(event));
      if (const auto* result = std::get_if<StepResult>(&events.back())) {
        CHECK(result->step == steps_);
        return events;
      }
    }
  }
}

StepResult ModelDriver::Run(StepPlan plan) {
  return std::get<StepResult>(RunForEvents(std::move(plan)).back());
}

StepPlan ModelDriver::Plan(const std::vector<StepPart>& parts) {
  StepPlan plan;
  for (const StepPart& part : parts) {
    DrivenSequence& sequence = *part.sequence;
    const int end = sequence.computed + part.rows;
    CHECK(part.rows > 0 && part.sampled <= part.rows &&
          end <= static_cast<int>(sequence.tokens.size()));
    const int blocks = BlocksFor(end);
    while (static_cast<int>(sequence.blocks.size()) < blocks) {
      sequence.blocks.push_back(Allocate());
    }
    plan.sequences.push_back(
        {.first_row = static_cast<int32_t>(plan.tokens.size()),
         .rows = part.rows,
         .first_block = static_cast<int32_t>(plan.block_table.size()),
         .blocks = blocks});
    plan.block_table.insert(plan.block_table.end(), sequence.blocks.begin(),
                            sequence.blocks.begin() + blocks);
    for (int position = sequence.computed; position < end; ++position) {
      if (position >= end - part.sampled) {
        plan.samples.push_back(
            {.row = static_cast<int32_t>(plan.tokens.size()),
             .params = sequence.sampling,
             .sample = sequence.sample,
             .position = static_cast<uint64_t>(position) + 1});
      }
      plan.tokens.push_back(sequence.tokens[position]);
      plan.positions.push_back(position);
    }
  }
  return plan;
}

std::vector<SampledToken> ModelDriver::Step(
    const std::vector<StepPart>& parts) {
  StepResult result = Run(Plan(parts));
  CHECK(result.status.ok()) << result.status.ToString();
  for (const StepPart& part : parts) part.sequence->computed += part.rows;
  return std::move(result.sampled);
}

std::vector<SampledToken> ModelDriver::Prefill(DrivenSequence& sequence,
                                               int chunk, int sampled) {
  const int end = static_cast<int>(sequence.tokens.size());
  std::vector<SampledToken> drawn;
  while (sequence.computed < end) {
    const int rows = std::min(chunk, end - sequence.computed);
    const int after = end - sequence.computed - rows;
    const int wanted = std::clamp(sampled - after, 0, rows);
    for (SampledToken& token :
         Step({{.sequence = &sequence, .rows = rows, .sampled = wanted}})) {
      drawn.push_back(std::move(token));
    }
  }
  return drawn;
}

std::vector<SampledToken> ModelDriver::Decode(DrivenSequence& sequence,
                                              SampledToken next, int count) {
  std::vector<SampledToken> drawn = {std::move(next)};
  for (int i = 0; i < count; ++i) {
    sequence.tokens.push_back(drawn.back().token);
    drawn.push_back(Step({{.sequence = &sequence}})[0]);
  }
  return drawn;
}

}  // namespace penstock
