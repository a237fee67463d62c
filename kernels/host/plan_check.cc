#include "kernels/host/plan_check.h"

#include <vector>

#include "common/base/check.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

// True when [first, first + count) lies within [0, size).
bool Within(int64_t first, int64_t count, int64_t size) {
  return first >= 0 && count >= 0 && first <= size - count;
}

void CheckSequence(const StepPlan& plan, const SequenceRows& sequence,
                   const PlanBounds& bounds, std::vector<bool>& taken) {
  CHECK(sequence.rows > 0 &&
        Within(sequence.first_row, sequence.rows, plan.tokens.size()))
      << "rows of a sequence";
  CHECK(Within(sequence.first_block, sequence.blocks, plan.block_table.size()))
      << "blocks of a sequence";
  const int64_t first = plan.positions[sequence.first_row];
  for (int32_t i = 0; i < sequence.rows; ++i) {
    const int32_t row = sequence.first_row + i;
    CHECK(!taken[row]) << "row " << row << " belongs to two sequences";
    taken[row] = true;
    CHECK(plan.positions[row] == first + i) << "position of row " << row;
  }
  CHECK(first >= 0 &&
        (first + sequence.rows - 1) / kBlockTokens < sequence.blocks)
      << "blocks do not reach position " << first + sequence.rows - 1;
  for (int32_t i = 0; i < sequence.blocks; ++i) {
    const BlockIndex block = plan.block_table[sequence.first_block + i];
    CHECK(Within(block, 1, bounds.arena_blocks)) << "block " << block;
  }
}

}  // namespace

void CheckPlan(const StepPlan& plan, const PlanBounds& bounds) {
  const size_t rows = plan.tokens.size();
  CHECK(rows > 0 && rows <= static_cast<size_t>(bounds.max_rows) &&
        plan.positions.size() == rows)
      << rows << " rows";
  CHECK(plan.sequences.size() <= static_cast<size_t>(bounds.max_sequences))
      << plan.sequences.size() << " sequences";
  std::vector<bool> taken(rows);
  int64_t owned = 0;
  for (const SequenceRows& sequence : plan.sequences) {
    CheckSequence(plan, sequence, bounds, taken);
    owned += sequence.rows;
  }
  CHECK(owned == static_cast<int64_t>(rows)) << "a row has no sequence";
  for (TokenId token : plan.tokens) {
    CHECK(Within(token, 1, bounds.vocab_size)) << "token " << token;
  }
  for (const SampleRow& sample : plan.samples) {
    CHECK(Within(sample.row, 1, rows)) << "sampled row " << sample.row;
  }
  for (const ScoreRow& score : plan.scores) {
    CHECK(Within(score.row, 1, rows)) << "scored row " << score.row;
    CHECK(Within(score.token, 1, bounds.vocab_size) && score.best >= 0)
        << "score of token " << score.token << " and the best " << score.best;
  }
  for (const StepPlan::BlockCopy& copy : plan.copies) {
    CHECK(Within(copy.from, 1, bounds.arena_blocks) &&
          Within(copy.to, 1, bounds.arena_blocks) && copy.from != copy.to)
        << "copy of block " << copy.from << " to " << copy.to;
  }
}

}  // namespace penstock
