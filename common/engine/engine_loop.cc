#include "common/engine/engine_loop.h"

#include <algorithm>
#include <iterator>
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
  return CheckFits(tokens, BlocksFor(tokens));
}

absl::Status EngineLoop::CheckFits(int tokens, int64_t need) const {
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
                                           AddOptions options) {
  SequenceId id(next_id_);
  Entry entry;
  entry.running = !sequence->blocks.empty();
  entry.arrival = id.value();
  if (auto it = entries_.find(options.sibling); it != entries_.end()) {
    entry.arrival = it->second.arrival;
  } else if (!entry.running && load().waiting >= options_.max_waiting) {
    return MakeError(ErrorReason::kQueueFull,
                     absl::StrCat("the worker's queue holds ",
                                  options_.max_waiting, " requests; try later"),
                     "", absl::Seconds(1));
  }
  // Before anybody else learns of its blocks: the cache may have others.
  if (entry.running) Publish(*sequence);
  entry.sequence = std::move(sequence);
  entry.listener = listener;
  entry.after_draw = options.after_draw;
  entry.queued_at = ports_.clock->Now();
  entry.scheduled = entry.running || entry.arrival != id.value();
  ++next_id_;
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
  if (Available() < count) return std::nullopt;
  do {
    int missing = count - ports_.pool->free();
    if (missing > 0) ports_.cache->Evict(missing);
    auto blocks = ports_.pool->TryAllocate(count);
    if (blocks.has_value()) return blocks;
  } while (ports_.kept != nullptr && ports_.kept->DropOldest());
  return std::nullopt;
}

int EngineLoop::Available() const {
  BlockCounts counts = ports_.pool->counts();
  int kept =
      ports_.kept == nullptr ? 0 : ports_.kept->Reclaimable(*ports_.pool);
  return counts.free + counts.cached + kept;
}

std::optional<std::vector<BlockHold>> EngineLoop::TryReserve(int count,
                                                             int held) {
  int available = Available();
  bool idle = available + held == ports_.pool->total();
  int margin = idle ? 0 : options_.watermark_blocks;
  if (available < count + margin) return std::nullopt;
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
  view.free_blocks = Available();
  view.max_rows = options_.max_rows;
  view.max_sequences = options_.max_sequences;
  view.prefill_chunk = options_.prefill_chunk;
  view.watermark_blocks = options_.watermark_blocks;
  std::vector<std::pair<uint64_t, SequenceView>> by_age;
  for (const auto& [id, entry] : entries_) {
    if (entry.parked &&
        (entry.after_draw != AfterDraw::kWait || !entry.running)) {
      continue;
    }
    by_age.emplace_back(entry.arrival, ViewOf(id, entry));
  }
  std::stable_sort(
      by_age.begin(), by_age.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  view.sequences.reserve(by_age.size());
  for (auto& [arrival, sequence] : by_age) view.sequences.push_back(sequence);
  view.shared = [this](SequenceId id) { return SharedOf(entries_.at(id)); };
  return view;
}

SequenceView EngineLoop::ViewOf(SequenceId id, const Entry& entry) const {
  const Sequence& s = *entry.sequence;
  SequenceView view;
  view.id = id;
  view.priority = s.request().priority;
  view.length = s.length();
  view.computed = s.computed;
  view.blocks = static_cast<int>(s.blocks.size());
  view.running = entry.running;
  view.parked = entry.parked;
  view.copies_tail = entry.running && CopiesTail(s);
  return view;
}

SharedBlocks EngineLoop::SharedOf(const Entry& entry) const {
  const Sequence& s = *entry.sequence;
  SharedBlocks shared;
  if (entry.running) {
    for (const BlockHold& hold : s.blocks) {
      shared.held += ports_.pool->References(hold.ref()) > 1;
    }
  } else {
    const PrefixCache::Found found =
        ports_.cache->Look(s.root(), s.tokens(), ReusableBlocks(s));
    shared.cached = found.blocks;
    shared.held = found.in_use;
  }
  return shared;
}

// Full blocks that may come from the prefix cache. The last token is always
// computed, since its logits are wanted; so is a prompt row to be scored.
int EngineLoop::ReusableBlocks(const Sequence& s) const {
  int positions = s.length() - 1;
  if (s.request().prompt_logprobs >= 0 && s.scored < s.prompt_tokens() - 1) {
    positions = std::min(positions, s.scored);
  }
  return positions / kBlockTokens;
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
  s.blocks = ports_.cache->Match(s.root(), s.tokens(), ReusableBlocks(s));
  s.computed = static_cast<int>(s.blocks.size()) * kBlockTokens;
  s.published = static_cast<int>(s.blocks.size());
  entry.running = true;
  if (!s.looked_up) {
    s.looked_up = true;
    s.cached_tokens = std::min(s.computed, s.prompt_tokens());
    ports_.probe->PrefixLooked(s.prompt_tokens(), s.cached_tokens);
  }
}

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
  for (int i = 0; i < rows; ++i) {
    plan.tokens.push_back(s.tokens()[s.computed + i]);
    plan.positions.push_back(s.computed + i);
  }
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
  plan.block_table.reserve(table_size_);
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
    // What was given up may be what another waits for.
    return !decision.preempt.empty();
  }
  ++next_step_;
  in_flight_ = true;
  submitted_at_ = now;
  if (!plan.copies.empty()) {
    ports_.probe->BlocksCopied(static_cast<int>(plan.copies.size()));
  }
  table_size_ = plan.block_table.size();
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
