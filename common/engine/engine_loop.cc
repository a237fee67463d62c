#include "common/engine/engine_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// Weight of the newest step in the smoothed step time.
constexpr double kStepTimeWeight = 0.2;

}  // namespace

EngineLoop::EngineLoop(EngineOptions options, Ports ports)
    : options_(options), ports_(ports) {
  const BackendCaps& caps = ports_.backend->caps();
  options_.max_rows = std::min(options_.max_rows, caps.max_rows);
  options_.max_sequences = std::min(options_.max_sequences, caps.max_sequences);
  CHECK(options_.max_rows > 0 && options_.max_sequences > 0 &&
        options_.prefill_chunk > 0);
}

EngineLoop::~EngineLoop() = default;

absl::Status EngineLoop::CheckFits(int tokens) const {
  int need = BlocksFor(tokens);
  int have = ports_.pool->total();
  if (need <= have) return absl::OkStatus();
  return MakeError(
      ErrorReason::kKvTooSmall,
      absl::StrCat("the request needs ", need, " KV blocks for ", tokens,
                   " tokens, this worker has ", have,
                   "; lower max_tokens, shorten the prompt or start the worker "
                   "with a larger --kv-memory"),
      "max_tokens");
}

absl::StatusOr<SequenceId> EngineLoop::Add(std::unique_ptr<Sequence> sequence,
                                           SequenceListener* listener,
                                           int hold_after_tokens) {
  Entry entry;
  entry.running = !sequence->blocks.empty();
  if (!entry.running && load().waiting >= options_.max_waiting) {
    return MakeError(ErrorReason::kQueueFull,
                     absl::StrCat("the worker's queue holds ",
                                  options_.max_waiting, " requests; try later"),
                     "", absl::Seconds(1));
  }
  entry.sequence = std::move(sequence);
  entry.listener = listener;
  entry.hold_after_tokens = hold_after_tokens;
  entry.queued_at = ports_.clock->Now();
  entry.scheduled = entry.running;
  SequenceId id(next_id_++);
  entries_.emplace(id, std::move(entry));
  return id;
}

std::unique_ptr<Sequence> EngineLoop::Remove(SequenceId id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return nullptr;
  std::unique_ptr<Sequence> sequence = std::move(it->second.sequence);
  entries_.erase(it);
  bool planned = std::any_of(planned_.begin(), planned_.end(),
                             [&](const PlannedRows& p) { return p.id == id; });
  if (in_flight_ && planned) {
    for (const BlockHold& hold : sequence->blocks) {
      until_step_ends_.push_back(hold.Share());
    }
  }
  return sequence;
}

Sequence* EngineLoop::Find(SequenceId id) {
  auto it = entries_.find(id);
  return it == entries_.end() ? nullptr : it->second.sequence.get();
}

std::optional<std::vector<BlockHold>> EngineLoop::Allocate(int count) {
  int missing = count - ports_.pool->free();
  if (missing > 0) ports_.cache->Evict(missing);
  return ports_.pool->TryAllocate(count);
}

std::optional<std::vector<BlockHold>> EngineLoop::TryReserve(int count) {
  BlockCounts counts = ports_.pool->counts();
  bool idle = counts.active + counts.in_transfer + counts.quarantined == 0;
  int margin = idle ? 0 : options_.watermark_blocks;
  if (counts.free + counts.cached < count + margin) return std::nullopt;
  return Allocate(count);
}

EngineLoad EngineLoop::load() const {
  EngineLoad load;
  load.step_time = step_time_;
  for (const auto& [id, entry] : entries_) {
    if (entry.parked) continue;
    ++(entry.running ? load.running : load.waiting);
    int left = entry.sequence->length() - entry.sequence->computed;
    if (left > 1) load.queued_tokens += left;
  }
  return load;
}

bool EngineLoop::Tick() {
  bool progress = DrainBackend();
  if (!in_flight_) progress |= SubmitNext();
  return progress;
}

EngineView EngineLoop::View() const {
  EngineView view;
  view.free_blocks = ports_.pool->free() + ports_.pool->counts().cached;
  view.max_rows = options_.max_rows;
  view.max_sequences = options_.max_sequences;
  view.prefill_chunk = options_.prefill_chunk;
  view.watermark_blocks = options_.watermark_blocks;
  for (const auto& [id, entry] : entries_) {
    if (entry.parked) continue;
    const Sequence& s = *entry.sequence;
    SequenceView v;
    v.id = id;
    v.priority = s.request().priority;
    v.length = s.length();
    v.computed = s.computed;
    v.blocks = static_cast<int>(s.blocks.size());
    v.running = entry.running;
    if (!entry.running) {
      // The last token is always computed: its logits are wanted.
      v.cached_blocks = ports_.cache->MatchLength(
          s.root(), s.tokens(), (s.length() - 1) / kBlockTokens);
    }
    view.sequences.push_back(v);
  }
  return view;
}

void EngineLoop::Preempt(Entry& entry) {
  Sequence& s = *entry.sequence;
  s.blocks.clear();
  s.computed = 0;
  s.published = 0;
  entry.running = false;
  ports_.probe->Preempted();
}

void EngineLoop::Admit(Entry& entry) {
  Sequence& s = *entry.sequence;
  s.blocks = ports_.cache->Match(s.root(), s.tokens(),
                                 (s.length() - 1) / kBlockTokens);
  s.computed = static_cast<int>(s.blocks.size()) * kBlockTokens;
  s.published = static_cast<int>(s.blocks.size());
  entry.running = true;
  if (!s.looked_up) {
    s.looked_up = true;
    s.cached_tokens = std::min(s.computed, s.prompt_tokens());
    ports_.probe->PrefixLooked(s.prompt_tokens(), s.cached_tokens);
  }
}

bool EngineLoop::GrowBlocks(Entry& entry, int positions, StepPlan& plan) {
  Sequence& s = *entry.sequence;
  int have = static_cast<int>(s.blocks.size());
  int first_written = s.computed / kBlockTokens;
  // A partly filled block that others refer to is copied before it is written.
  bool copy = first_written < have &&
              ports_.pool->References(s.blocks[first_written].ref()) > 1;
  int need = std::max(0, BlocksFor(positions) - have) + (copy ? 1 : 0);
  if (need == 0) return true;
  auto fresh = Allocate(need);
  if (!fresh.has_value()) return false;
  if (copy) {
    BlockHold own = std::move(fresh->back());
    fresh->pop_back();
    plan.copies.push_back({s.blocks[first_written].index(), own.index()});
    // The source stays held until the step has copied it.
    until_step_ends_.push_back(std::move(s.blocks[first_written]));
    s.blocks[first_written] = std::move(own);
  }
  for (BlockHold& hold : *fresh) s.blocks.push_back(std::move(hold));
  return true;
}

void EngineLoop::AddRows(SequenceId id, Entry& entry, int rows,
                         StepPlan& plan) {
  Sequence& s = *entry.sequence;
  PlannedRows planned{id, rows, -1};
  SequenceRows part;
  part.first_row = static_cast<int32_t>(plan.tokens.size());
  part.rows = rows;
  part.first_block = static_cast<int32_t>(plan.block_table.size());
  for (int i = 0; i < rows; ++i) {
    plan.tokens.push_back(s.tokens()[s.computed + i]);
    plan.positions.push_back(s.computed + i);
  }
  int blocks = BlocksFor(s.computed + rows);
  for (int b = 0; b < blocks; ++b) {
    plan.block_table.push_back(s.blocks[b].index());
  }
  part.blocks = blocks;
  plan.sequences.push_back(part);
  if (s.computed + rows == s.length()) {
    planned.sample = static_cast<int>(plan.samples.size());
    SampleRow sample;
    sample.row = part.first_row + rows - 1;
    sample.params = s.request().sampling;
    sample.position = s.length();
    s.draw_state().Fill(s.generated(), sample);
    plan.samples.push_back(std::move(sample));
  }
  planned_.push_back(planned);
}

bool EngineLoop::SubmitNext() {
  if (entries_.empty()) return false;
  Instant now = ports_.clock->Now();
  BatchDecision decision = ports_.policy->Plan(View(), now);
  for (SequenceId id : decision.preempt) Preempt(entries_.at(id));
  for (SequenceId id : decision.admit) Admit(entries_.at(id));
  StepPlan plan;
  plan.step = next_step_;
  std::vector<SequenceListener*> newly_scheduled;
  for (const BatchDecision::Rows& rows : decision.rows) {
    Entry& entry = entries_.at(rows.id);
    Sequence& s = *entry.sequence;
    int count = std::min(rows.rows, s.length() - s.computed);
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
    return false;
  }
  ++next_step_;
  in_flight_ = true;
  submitted_at_ = now;
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
    if (auto* result = std::get_if<StepResult>(&*event)) FinishStep(*result);
  }
  return progress;
}

void EngineLoop::FinishStep(const StepResult& result) {
  in_flight_ = false;
  std::vector<PlannedRows> planned = std::exchange(planned_, {});
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
    listener->OnFailed(result.status);
    return;
  }
  Sequence& s = *entry.sequence;
  int prompt_before = std::min(s.computed, s.prompt_tokens());
  s.computed += planned.rows;
  s.prompt_computed_here +=
      std::min(s.computed, s.prompt_tokens()) - prompt_before;
  Publish(s);
  listener->OnComputed(s.computed);
  if (planned.sample < 0) return;
  // The listener may have removed it.
  it = entries_.find(planned.id);
  if (it == entries_.end()) return;
  CHECK(planned.sample < static_cast<int>(result.sampled.size()));
  if (const absl::Status& drawn = result.sampled[planned.sample].status;
      !drawn.ok()) {
    it->second.parked = true;
    listener->OnFailed(drawn);
    return;
  }
  TokenDelivery delivery =
      it->second.sequence->Append(result.sampled[planned.sample]);
  ++it->second.made_here;
  it->second.parked = delivery.finish != FinishReason::kNone ||
                      it->second.made_here == it->second.hold_after_tokens;
  ports_.probe->TokenMade();
  listener->OnToken(delivery);
}

void EngineLoop::Publish(Sequence& s) {
  while ((s.published + 1) * kBlockTokens <= s.computed) {
    int block = s.published;
    BlockHash hash = s.HashOf(block, *ports_.hasher);
    BlockHash parent =
        block == 0 ? s.root() : s.HashOf(block - 1, *ports_.hasher);
    s.blocks[block] =
        ports_.cache->Insert(parent, hash,
                             absl::MakeConstSpan(s.tokens())
                                 .subspan(block * kBlockTokens, kBlockTokens),
                             s.blocks[block].ref());
    ++s.published;
  }
}

}  // namespace penstock
