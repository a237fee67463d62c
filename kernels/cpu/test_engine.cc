#include "kernels/cpu/test_engine.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/model/kv_layout.h"

namespace penstock {

TestEngine::TestEngine(CpuBackendOptions options, int blocks)
    : arena_(
          KvLayout::For(options.model->spec(), options.kv_type).block_bytes() *
              blocks,
          0xff) {
  options.arena.bytes = absl::MakeSpan(arena_);
  auto backend = CpuBackend::Create(std::move(options));
  CHECK(backend.ok()) << backend.status();
  backend_ = *std::move(backend);
}

std::vector<SampledToken> TestEngine::Step(
    const std::vector<Chunk>& chunks, std::vector<StepPlan::BlockCopy> copies) {
  StepPlan plan;
  plan.copies = std::move(copies);
  for (const Chunk& chunk : chunks) {
    SequenceRows rows;
    rows.first_row = static_cast<int32_t>(plan.tokens.size());
    rows.rows = static_cast<int32_t>(chunk.tokens.size());
    rows.first_block = static_cast<int32_t>(plan.block_table.size());
    const int end = chunk.first_position + rows.rows;
    rows.blocks = BlocksFor(end);
    for (int i = 0; i < rows.blocks; ++i) {
      plan.block_table.push_back(chunk.first_block + i);
    }
    for (int i = 0; i < rows.rows; ++i) {
      plan.tokens.push_back(chunk.tokens[i]);
      plan.positions.push_back(chunk.first_position + i);
      if (static_cast<size_t>(i) < chunk.first_sample) continue;
      SampleRow sample;
      sample.row = rows.first_row + i;
      sample.params.temperature = 0;
      sample.params.logprobs = chunk.top;
      plan.samples.push_back(sample);
    }
    plan.sequences.push_back(rows);
  }
  backend_->Submit(std::move(plan));
  for (;;) {
    std::optional<BackendEvent> event = backend_->Poll();
    if (!event.has_value()) {
      std::this_thread::yield();
      continue;
    }
    auto* result = std::get_if<StepResult>(&*event);
    if (result == nullptr) continue;
    CHECK(result->status.ok()) << result->status;
    return std::move(result->sampled);
  }
}

std::vector<SampledToken> TestEngine::Prefill(Chunk whole, int chunk) {
  std::vector<SampledToken> sampled;
  for (size_t at = 0; at < whole.tokens.size(); at += chunk) {
    const size_t end = std::min(whole.tokens.size(), at + chunk);
    Chunk part = whole;
    part.tokens.assign(whole.tokens.begin() + at, whole.tokens.begin() + end);
    part.first_position = whole.first_position + static_cast<int>(at);
    part.first_sample = whole.first_sample > at ? whole.first_sample - at : 0;
    for (SampledToken& token : Step({part})) {
      sampled.push_back(std::move(token));
    }
  }
  return sampled;
}

std::vector<TokenId> TestEngine::Generate(std::vector<TokenId> prompt,
                                          int count) {
  std::vector<TokenId> generated;
  Chunk next = {.tokens = std::move(prompt)};
  next.first_sample = next.tokens.size() - 1;
  while (static_cast<int>(generated.size()) < count) {
    generated.push_back(Prefill(next).back().token);
    next.first_position += static_cast<int>(next.tokens.size());
    next.tokens = {generated.back()};
    next.first_sample = 0;
  }
  return generated;
}

}  // namespace penstock
