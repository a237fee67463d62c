#include "kernels/cpu/engine_bench.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

double SecondsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::function<void()> EngineBench::wake() {
  return [this] { driver_.Ring(); };
}

void EngineBench::RunStep(Backend& backend, StepPlan plan, Tally& tally) {
  if (cost_) tally.cost += cost_(plan);
  ++tally.steps;
  const auto start = SteadyClock::now();
  const absl::Status status = driver_.Run(backend, std::move(plan));
  CHECK(status.ok()) << status;
  tally.seconds += SecondsSince(start);
}

EngineBench::Tally EngineBench::Prefill(Backend& backend, int tokens, int depth,
                                        int index, int blocks_each) {
  Tally tally;
  const int most = backend.caps().max_rows;
  for (int at = 0; at < tokens; at += most) {
    StepPlan plan;
    const int rows = std::min(most, tokens - at);
    AddProbeRows(plan, index * blocks_each, depth + at, rows);
    if (at + rows == tokens) SampleLastRow(plan);
    RunStep(backend, std::move(plan), tally);
  }
  return tally;
}

// The work does not depend on what the tokens are, so one history will do; its
// pages are copied, for to read memory that caches hold already would.
void EngineBench::MakeHistories(Backend& backend, int count, int blocks_each,
                                int depth) {
  Prefill(backend, depth, 0, 0, blocks_each);
  StepPlan plan;
  for (int i = 1; i < count; ++i) {
    for (int block = 0; block < BlocksFor(depth); ++block) {
      plan.copies.push_back({.from = block, .to = i * blocks_each + block});
    }
  }
  AddProbeRows(plan, 0, depth, 1);
  SampleLastRow(plan);
  Tally tally;
  RunStep(backend, std::move(plan), tally);
}

EngineBench::Tally EngineBench::Decode(Backend& backend, int batch,
                                       int blocks_each,
                                       const EngineBenchOptions& options) {
  Tally tally;
  for (int step = 0; step < options.decode_steps; ++step) {
    StepPlan plan;
    for (int i = 0; i < batch; ++i) {
      AddProbeRows(plan, i * blocks_each, options.depth + step, 1);
      SampleLastRow(plan);
    }
    RunStep(backend, std::move(plan), tally);
  }
  return tally;
}

int64_t EngineBench::BlocksNeeded(const EngineBenchOptions& options) {
  int64_t blocks = 0;
  for (int tokens : options.prefill) {
    blocks = std::max<int64_t>(blocks, BlocksFor(tokens));
  }
  for (int batch : options.batches) {
    blocks = std::max<int64_t>(
        blocks,
        int64_t{batch} * BlocksFor(options.depth + options.decode_steps));
  }
  return blocks;
}

std::vector<EngineBenchRow> EngineBench::Run(Backend& backend,
                                             int64_t arena_blocks,
                                             const EngineBenchOptions& options,
                                             CostOfPlan cost) {
  CHECK(arena_blocks >= BlocksNeeded(options)) << arena_blocks << " blocks";
  cost_ = std::move(cost);
  std::vector<EngineBenchRow> rows;
  // Adds what `run` takes to a row that says how many tokens it makes.
  auto add = [&](EngineBenchRow row, int tokens, auto run) {
    std::vector<double> seconds;
    for (int i = 0; i < options.repeat; ++i) {
      const Tally tally = run();
      seconds.push_back(tally.seconds);
      row.steps = tally.steps;
      row.cost = tally.cost;  // the same in every run
    }
    row.seconds = Median(seconds);
    row.tokens_per_second = tokens / row.seconds;
    rows.push_back(row);
  };
  for (int tokens : options.prefill) {
    Prefill(backend, std::min(tokens, 64), 0, 0, BlocksFor(tokens));  // warm
    add({.size = tokens}, tokens,
        [&] { return Prefill(backend, tokens, 0, 0, BlocksFor(tokens)); });
  }
  const int blocks_each = BlocksFor(options.depth + options.decode_steps);
  if (!options.batches.empty()) {
    MakeHistories(
        backend,
        *std::max_element(options.batches.begin(), options.batches.end()),
        blocks_each, options.depth);
  }
  for (int batch : options.batches) {
    CHECK(batch <= backend.caps().max_sequences &&
          batch <= backend.caps().max_rows)
        << "a batch of " << batch;
    add({.decode = true, .size = batch, .depth = options.depth},
        batch * options.decode_steps,
        [&] { return Decode(backend, batch, blocks_each, options); });
  }
  return rows;
}

}  // namespace penstock
