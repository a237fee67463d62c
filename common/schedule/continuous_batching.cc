#include <algorithm>
#include <memory>
#include <vector>

#include "common/model/kv_layout.h"
#include "common/schedule/batch_policy.h"

namespace penstock {
namespace {

// One Plan call: the view plus what has been decided so far.
class Planner {
 public:
  explicit Planner(const EngineView& view)
      : view_(view),
        free_(view.free_blocks),
        rows_left_(view.max_rows),
        preempted_(view.sequences.size(), false) {}

  BatchDecision Run() {
    PlanDecodes();
    PlanPrefills();
    PlanAdmissions();
    if (Idle()) FreeParked();
    decision_.starved = Idle() && AllNeedBlocks();
    return std::move(decision_);
  }

 private:
  // Positions that it may compute now.
  static int RowsLeft(const SequenceView& s) {
    return s.running && !s.parked ? std::min(s.length, s.limit) - s.computed
                                  : 0;
  }
  static bool Decoding(const SequenceView& s) {
    return RowsLeft(s) == 1 && s.computed + 1 == s.length;
  }
  static bool Prefilling(const SequenceView& s) {
    return RowsLeft(s) > 0 && !Decoding(s);
  }
  bool Full() const {
    return rows_left_ == 0 ||
           static_cast<int>(decision_.rows.size()) >= view_.max_sequences;
  }

  SharedBlocks SharedOf(const SequenceView& s) const {
    return view_.shared ? view_.shared(s.id) : SharedBlocks();
  }

  // Blocks for `rows` more positions of sequence `at`, preempting younger ones
  // if need be. False: it has to sit this step out.
  bool Grow(size_t at, int rows) {
    const SequenceView& s = view_.sequences[at];
    int need = std::max(0, BlocksFor(s.computed + rows) - s.blocks) +
               (s.copies_tail ? 1 : 0);
    while (need > free_) {
      if (!PreemptYoungestAfter(at)) return false;
    }
    free_ -= need;
    return true;
  }

  bool PreemptYoungestAfter(size_t at) {
    for (size_t i = view_.sequences.size(); i-- > at + 1;) {
      const SequenceView& victim = view_.sequences[i];
      if (!victim.running || preempted_[i] || victim.blocks == 0) continue;
      preempted_[i] = true;
      free_ += victim.blocks - SharedOf(victim).held;
      decision_.preempt.push_back(victim.id);
      std::erase_if(decision_.rows, [&](const BatchDecision::Rows& rows) {
        if (rows.id != victim.id) return false;
        rows_left_ += rows.rows;
        work_.Remove(rows.rows, victim.computed,
                     Samples(victim, rows.rows, victim.computed));
        return true;
      });
      return true;
    }
    return false;
  }

  // Members of a group wait parked for one that has no blocks: nobody would
  // ever move.
  void FreeParked() {
    bool waiting = false;
    size_t youngest = view_.sequences.size();
    for (size_t i = 0; i < view_.sequences.size(); ++i) {
      const SequenceView& s = view_.sequences[i];
      // It moves by itself.
      if (s.running && s.limit < s.length) return;
      waiting |= !s.running;
      if (s.running && s.parked && s.blocks > 0) youngest = i;
    }
    if (waiting && youngest < view_.sequences.size()) {
      decision_.preempt.push_back(view_.sequences[youngest].id);
    }
  }

  bool Idle() const {
    return decision_.rows.empty() && decision_.preempt.empty();
  }

  // False too when one waits for its pages: it moves by itself.
  bool AllNeedBlocks() const {
    bool any = false;
    for (const SequenceView& s : view_.sequences) {
      if (s.running && s.limit < s.length) return false;
      any |= !s.running || RowsLeft(s) > 0;
    }
    return any;
  }

  // Logits are wanted of a sequence's last row only.
  static int Samples(const SequenceView& s, int rows, int behind) {
    return behind + rows == s.length ? 1 : 0;
  }

  // Takes `rows` of sequence `at`, the first `behind` of which are computed.
  void Take(size_t at, int rows, int behind) {
    const SequenceView& s = view_.sequences[at];
    decision_.rows.push_back({s.id, rows});
    rows_left_ -= rows;
    work_.Add(rows, behind, Samples(s, rows, behind));
  }

  // As many of the next `rows` as a prefill may compute in this step, which may
  // be none: the step has no time left.
  int Chunk(const SequenceView& s, int rows, int behind) {
    rows = std::min({rows, view_.prefill_chunk, rows_left_});
    if (!view_.step_time || !decodes_) return rows;
    auto fits = [&](int count) {
      StepSize work = work_;
      work.Add(count, behind, Samples(s, count, behind));
      return view_.step_time(work) <= view_.step_target;
    };
    if (fits(rows)) return rows;
    int least = chunks_ == 0 ? std::min(rows, kBlockTokens) : 0;
    while (least + 1 < rows) {  // `rows` do not fit
      const int middle = (least + rows) / 2;
      (fits(middle) ? least : rows) = middle;
    }
    return least;
  }

  void PlanDecodes() {
    for (size_t i = 0; i < view_.sequences.size() && !Full(); ++i) {
      if (preempted_[i] || !Decoding(view_.sequences[i])) continue;
      if (Grow(i, 1)) Take(i, 1, view_.sequences[i].computed);
    }
    decodes_ = !decision_.rows.empty();
  }

  void PlanPrefills() {
    for (size_t i = 0; i < view_.sequences.size() && !Full(); ++i) {
      const SequenceView& s = view_.sequences[i];
      if (preempted_[i] || !Prefilling(s)) continue;
      const int rows = Chunk(s, RowsLeft(s), s.computed);
      if (rows == 0) return;
      if (!Grow(i, rows)) continue;
      Take(i, rows, s.computed);
      ++chunks_;
    }
  }

  // Blocks that running sequences still need for what they have to compute.
  int PromisedBlocks() const {
    int promised = 0;
    for (size_t i = 0; i < view_.sequences.size(); ++i) {
      const SequenceView& s = view_.sequences[i];
      if (!s.running || preempted_[i]) continue;
      int planned = 0;
      for (const BatchDecision::Rows& rows : decision_.rows) {
        if (rows.id == s.id) planned = rows.rows;
      }
      int held = std::max(s.blocks, BlocksFor(s.computed + planned));
      promised += std::max(0, BlocksFor(s.length) - held);
    }
    return promised;
  }

  void PlanAdmissions() {
    // Preempting and admitting in one step would thrash.
    if (!decision_.preempt.empty()) return;
    std::vector<size_t> waiting;
    bool any_running = false;
    for (size_t i = 0; i < view_.sequences.size(); ++i) {
      any_running |= view_.sequences[i].running;
      if (!view_.sequences[i].running) waiting.push_back(i);
    }
    if (waiting.empty()) return;
    std::stable_sort(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
      return view_.sequences[a].priority > view_.sequences[b].priority;
    });
    int available = free_ - PromisedBlocks();
    for (size_t i : waiting) {
      if (Full()) return;
      const SequenceView& s = view_.sequences[i];
      const SharedBlocks shared = SharedOf(s);
      // Its tokens so far, and one block to grow into. Cached blocks that
      // nobody holds count too: they are among the free ones until it holds
      // them.
      int need = BlocksFor(s.length + 1) - shared.held;
      int margin = any_running ? view_.watermark_blocks : 0;
      // In order: a large one at the head is not starved by small ones.
      if (need + margin > available) return;
      int cached = shared.cached * kBlockTokens;
      const int rows = Chunk(s, s.length - cached, cached);
      if (rows == 0) return;
      available -= need;
      any_running = true;
      decision_.admit.push_back(s.id);
      Take(i, rows, cached);
      ++chunks_;
    }
  }

  const EngineView& view_;
  int free_;
  int rows_left_;
  StepSize work_;         // of the rows so far
  bool decodes_ = false;  // some of them are
  int chunks_ = 0;
  std::vector<bool> preempted_;
  BatchDecision decision_;
};

class ContinuousBatching : public BatchPolicy {
 public:
  BatchDecision Plan(const EngineView& view, Instant now) const override {
    return Planner(view).Run();
  }
};

}  // namespace

std::unique_ptr<BatchPolicy> MakeContinuousBatching() {
  return std::make_unique<ContinuousBatching>();
}

}  // namespace penstock
