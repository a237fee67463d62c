#include "kernels/cpu/step_work.h"

#include <algorithm>
#include <numeric>

#include "common/model/kv_layout.h"

namespace penstock {
namespace {

// Tiles over runs of rows that belong to the same sequence of the plan;
// `sequences` [rows of the set] says which.
void AddTiles(const StepPlan& plan, const std::vector<int>& sequences,
              int tile_rows, RowSet& set) {
  for (int row = 0; row < set.rows();) {
    int end = row + 1;
    while (end < set.rows() && end - row < tile_rows &&
           sequences[end] == sequences[row]) {
      ++end;
    }
    set.tiles.push_back(
        {row, end - row,
         plan.block_table.data() + plan.sequences[sequences[row]].first_block});
    row = end;
  }
}

}  // namespace

StepWork StepWork::Of(const StepPlan& plan, int tile_rows) {
  StepWork work;
  const size_t rows = plan.tokens.size();
  work.all.positions = plan.positions;
  std::vector<int> sequences(rows);  // of each row
  work.row_blocks.resize(rows);
  work.row_slots.resize(rows);
  for (size_t index = 0; index < plan.sequences.size(); ++index) {
    const SequenceRows& sequence = plan.sequences[index];
    const BlockIndex* table = plan.block_table.data() + sequence.first_block;
    for (int i = 0; i < sequence.rows; ++i) {
      const int row = sequence.first_row + i;
      sequences[row] = static_cast<int>(index);
      work.row_blocks[row] = table[plan.positions[row] / kBlockTokens];
      work.row_slots[row] = plan.positions[row] % kBlockTokens;
    }
  }
  AddTiles(plan, sequences, tile_rows, work.all);
  work.tiles_are_whole = work.all.tiles.size() == plan.sequences.size();

  std::vector<int32_t> rows_used;  // [uses] -> row
  for (const SampleRow& sample : plan.samples) rows_used.push_back(sample.row);
  for (const ScoreRow& score : plan.scores) rows_used.push_back(score.row);
  work.samples.resize(rows_used.size());
  std::iota(work.samples.begin(), work.samples.end(), 0);
  std::stable_sort(work.samples.begin(), work.samples.end(),
                   [&](int a, int b) { return rows_used[a] < rows_used[b]; });
  std::vector<int> sampled_sequences;
  for (size_t i = 0; i < work.samples.size(); ++i) {
    const int32_t row = rows_used[work.samples[i]];
    if (!work.sampled_rows.empty() && work.sampled_rows.back() == row) continue;
    work.sampled_rows.push_back(row);
    work.sample_starts.push_back(static_cast<int32_t>(i));
    work.sampled.positions.push_back(plan.positions[row]);
    sampled_sequences.push_back(sequences[row]);
  }
  work.sample_starts.push_back(static_cast<int32_t>(work.samples.size()));
  AddTiles(plan, sampled_sequences, tile_rows, work.sampled);
  return work;
}

}  // namespace penstock
