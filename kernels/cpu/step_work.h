#pragma once

#include <cstdint>
#include <vector>

#include "kernels/api/step_plan.h"

namespace penstock {

// Rows of one sequence whose queries share the loads of its pages.
struct AttentionTile {
  int first_row = 0;  // of the RowSet
  int rows = 0;
  const BlockIndex* blocks = nullptr;  // of the sequence, from position 0
};

// Rows that pass through a layer together.
struct RowSet {
  std::vector<int32_t> positions;  // [rows]
  std::vector<AttentionTile> tiles;

  int rows() const { return static_cast<int>(positions.size()); }
};

// What a plan means for the forward pass, worked out once a step. Points into
// the plan.
struct StepWork {
  RowSet all;
  // Every tile of `all` holds all rows of its sequence.
  bool tiles_are_whole = false;
  // Rows whose logits are sampled or scored, ascending: all that goes on after
  // the last layer has written its keys and values.
  std::vector<int32_t> sampled_rows;  // [logit rows] -> row
  RowSet sampled;
  // Uses of logits, grouped by logit row: those of logit row i are
  // samples[sample_starts[i]] to samples[sample_starts[i + 1]].
  std::vector<int32_t> samples;        // into StepPlan::samples, then ::scores
  std::vector<int32_t> sample_starts;  // [logit rows + 1]
  // Per row of `all`: the block it is written to, and the slot in it.
  std::vector<BlockIndex> row_blocks;
  std::vector<int32_t> row_slots;

  // Tiles hold at most `tile_rows` rows.
  static StepWork Of(const StepPlan& plan, int tile_rows);
};

}  // namespace penstock
