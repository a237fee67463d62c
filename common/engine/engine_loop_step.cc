#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/engine/engine_loop.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"

// How the engine makes a step of what the policy decided, and what it does
// with the step's result.

namespace penstock {
namespace {

// Weight of the newest step in the smoothed step time.
constexpr double kStepTimeWeight = 0.2;

}  // namespace

// A partly filled block that others refer to is copied before it is written;
// the last of its holders writes in place.
bool EngineLoop::CopiesTail(const Sequence& s) const {
  const size_t tail = s.computed / kBlockTokens;
  if (tail >= s.blocks.size()) return false;
  const BlockRef ref = s.blocks[tail].ref();
  // Sources of copies in the step that is being made are let go already.
  const auto copied =
      std::count_if(until_step_ends_.begin(), until_step_ends_.end(),
                    [&](const BlockHold& hold) { return hold.ref() == ref; });
  return ports_.pool->References(ref) > 1 + copied;
}

bool EngineLoop::GrowBlocks(Entry& entry, int positions, StepPlan& plan) {
  Sequence& s = *entry.sequence;
  const bool copy = CopiesTail(s);
  const int have = static_cast<int>(s.blocks.size());
  int need = std::max(0, BlocksFor(positions) - have) + (copy ? 1 : 0);
  if (need == 0) return true;
  auto fresh = Allocate(need);
  if (!fresh.has_value()) return false;
  if (copy) {
    BlockHold own = std::move(fresh->back());
    fresh->pop_back();
    BlockHold& tail = s.blocks[s.computed / kBlockTokens];
    plan.copies.push_back({tail.index(), own.index()});
    until_step_ends_.push_back(std::exchange(tail, std::move(own)));
  }
  for (BlockHold& hold : *fresh) s.blocks.push_back(std::move(hold));
  return true;
}

void EngineLoop::AddRows(SequenceId id, Entry& entry, int rows,
                         StepPlan& plan) {
  Sequence& s = *entry.sequence;
  PlannedRows planned{id, rows};
  SequenceRows part;
  part.first_row = static_cast<int32_t>(plan.tokens.size());
  part.rows = rows;
  part.first_block = static_cast<int32_t>(plan.block_table.size());
  const auto first = s.tokens().begin() + s.computed;
  plan.tokens.insert(plan.tokens.end(), first, first + rows);
  for (int i = 0; i < rows; ++i) plan.positions.push_back(s.computed + i);
  part.blocks = BlocksFor(s.computed + rows);
  plan.block_table.resize(part.first_block + part.blocks);
  for (int b = 0; b < part.blocks; ++b) {
    plan.block_table[part.first_block + b] = s.blocks[b].index();
  }
  plan.sequences.push_back(part);
  planned.first_score = static_cast<int>(plan.scores.size());
  if (const int best = s.request().prompt_logprobs; best >= 0) {
    // Each row says how likely the token after it was.
    const int last = std::min(s.computed + rows, s.prompt_tokens() - 1);
    for (int at = std::max(s.computed, s.scored); at < last; ++at) {
      plan.scores.push_back(
          {part.first_row + at - s.computed, s.tokens()[at + 1], best});
    }
  }
  planned.scores = static_cast<int>(plan.scores.size()) - planned.first_score;
  planned.first_sample = static_cast<int>(plan.samples.size());
  if (s.computed + rows == s.length()) {
    std::vector<SampleRow> draws = s.Draws(part.first_row + rows - 1);
    planned.samples = static_cast<int>(draws.size());
    std::move(draws.begin(), draws.end(), std::back_inserter(plan.samples));
  }
  planned_work_.Add(rows, s.computed,
                    planned.scores + (planned.samples > 0 ? 1 : 0));
  planned_.push_back(planned);
}

bool EngineLoop::MayBeginStep() {
  if (!turns_.shares()) return true;
  const EngineLoad work = load();
  if (work.running + work.waiting == 0) return true;
  return turns_.MayBegin(work.queued_tokens > 0 ? CoreUse::kPrompts
                                                : CoreUse::kAnswers);
}

bool EngineLoop::SubmitNext() {
  starved_.reset();
  if (entries_.empty()) return false;
  Instant now = ports_.clock->Now();
  BatchDecision decision = ports_.policy->Plan(View(), now);
  for (SequenceId id : decision.preempt) Preempt(entries_.at(id));
  bool fetches = false;
  for (SequenceId id : decision.admit) {
    Entry& entry = entries_.at(id);
    Admit(id, entry);
    fetches |= LimitOf(entry) != TierFetch::kNoLimit;
  }
  StepPlan plan = std::exchange(spare_plan_, {});
  plan.step = next_step_;
  std::vector<SequenceListener*> newly_scheduled;
  for (const BatchDecision::Rows& rows : decision.rows) {
    Entry& entry = entries_.at(rows.id);
    Sequence& s = *entry.sequence;
    const int end = std::min(s.length(), LimitOf(entry));
    const int count = std::min(rows.rows, end - s.computed);
    if (count <= 0) continue;  // its pages come first
    if (!GrowBlocks(entry, s.computed + count, plan)) {
      // Fewer blocks could be evicted than the view promised. One that holds
      // none yet goes back to the queue.
      if (s.blocks.empty()) entry.running = false;
      continue;
    }
    if (!entry.scheduled) {
      entry.scheduled = true;
      ports_.probe->SequenceQueued(now - entry.queued_at);
      newly_scheduled.push_back(entry.listener);
    }
    AddRows(rows.id, entry, count, plan);
  }
  if (plan.tokens.empty()) {
    until_step_ends_.clear();
    spare_plan_ = std::move(plan);
    if (decision.starved) starved_ = EarliestWaiting();
    // What was given up may be what another waits for, and rows that were
    // meant for one that fetches are another's.
    return !decision.preempt.empty() || fetches;
  }
  ++next_step_;
  in_flight_ = true;
  submitted_at_ = now;
  if (!plan.copies.empty()) {
    ports_.probe->BlocksCopied(static_cast<int>(plan.copies.size()));
  }
  const bool prompts = std::any_of(planned_.begin(), planned_.end(),
                                   [](const auto& p) { return p.rows > 1; });
  turns_.Began(prompts ? CoreUse::kPrompts : CoreUse::kAnswers);
  ports_.backend->Submit(std::move(plan));
  for (SequenceListener* listener : newly_scheduled) listener->OnScheduled();
  return true;
}

bool EngineLoop::DrainBackend() {
  bool progress = false;
  while (in_flight_) {
    std::optional<BackendEvent> event = ports_.backend->Poll();
    if (!event.has_value()) break;
    progress = true;
    if (auto* result = std::get_if<StepResult>(&*event)) {
      FinishStep(*result);
    } else {
      turns_.Renew();
    }
  }
  return progress;
}

void EngineLoop::FinishStep(StepResult& result) {
  in_flight_ = false;
  turns_.Ended();
  spare_plan_ = std::move(result.plan);
  spare_plan_.Clear();
  std::vector<PlannedRows> planned = std::exchange(planned_, {});
  const StepSize work = std::exchange(planned_work_, {});
  until_step_ends_.clear();
  absl::Duration took = ports_.clock->Now() - submitted_at_;
  step_time_ = step_time_ == absl::ZeroDuration()
                   ? took
                   : step_time_ + (took - step_time_) * kStepTimeWeight;
  int prefill_rows = 0;
  int decode_rows = 0;
  for (const PlannedRows& p : planned) {
    (p.rows > 1 ? prefill_rows : decode_rows) += p.rows;
  }
  ports_.probe->StepFinished(prefill_rows, decode_rows, took);
  if (result.status.ok()) step_times_.Observe(work, took);
  for (const PlannedRows& p : planned) FinishRows(p, result);
}

void EngineLoop::FinishRows(const PlannedRows& planned,
                            const StepResult& result) {
  auto it = entries_.find(planned.id);
  if (it == entries_.end()) return;  // removed meanwhile
  Entry& entry = it->second;
  SequenceListener* listener = entry.listener;
  if (!result.status.ok()) {
    entry.parked = true;
    listener->OnFailed(
        MakeError(ErrorReason::kInternal, result.status.message()));
    return;
  }
  Sequence& s = *entry.sequence;
  int prompt_before = std::min(s.computed, s.prompt_tokens());
  s.computed += planned.rows;
  s.prompt_computed_here +=
      std::min(s.computed, s.prompt_tokens()) - prompt_before;
  Publish(s);
  SkipFetched(entry);
  listener->OnComputed(s.computed);
  // The listener may remove it at any time.
  if (DeliverScores(planned, result)) DeliverDraws(planned, result);
}

// False: the sequence is gone.
bool EngineLoop::DeliverScores(const PlannedRows& planned,
                               const StepResult& result) {
  auto it = entries_.find(planned.id);
  if (it == entries_.end()) return false;
  if (planned.scores == 0) return true;
  CHECK(planned.first_score + planned.scores <=
        static_cast<int>(result.scored.size()));
  Sequence& s = *it->second.sequence;
  PromptLogprobs part;
  part.first_index = s.scored + 1;
  auto first = result.scored.begin() + planned.first_score;
  part.tokens.assign(first, first + planned.scores);
  s.scored += planned.scores;
  it->second.listener->OnScored(std::move(part));
  return entries_.contains(planned.id);
}

void EngineLoop::DeliverDraws(const PlannedRows& planned,
                              const StepResult& result) {
  if (planned.samples == 0) return;
  CHECK(planned.first_sample + planned.samples <=
        static_cast<int>(result.sampled.size()));
  Entry& entry = entries_.at(planned.id);
  auto drawn = absl::MakeConstSpan(result.sampled)
                   .subspan(planned.first_sample, planned.samples);
  for (const SampledToken& token : drawn) {
    if (token.status.ok()) continue;
    entry.parked = true;
    entry.listener->OnFailed(MakeError(ErrorReason::kInvalidField,
                                       token.status.message(),
                                       "sampling.allowed_tokens"));
    return;
  }
  for (int i = 0; i < planned.samples; ++i) ports_.probe->TokenMade();
  if (entry.after_draw != AfterDraw::kGoOn) {
    entry.parked = true;
    entry.listener->OnDrawn(planned.id, drawn);
    return;
  }
  CHECK(drawn.size() == 1) << "several answers go on in one sequence";
  TokenDelivery delivery = entry.sequence->Append(drawn[0]);
  entry.parked = delivery.finish != FinishReason::kNone;
  entry.listener->OnToken(delivery);
}

}  // namespace penstock
