#include "common/engine/engine_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"

namespace penstock {

EngineLoop::EngineLoop(EngineOptions options, Ports ports)
    : options_(options),
      ports_(ports),
      cost_(*CostModel::Create(options.cost)),
      step_times_(options.cost),
      turns_(options.itl_target,
             {ports.cores, ports.clock, ports.timers, ports.probe}),
      traffic_({ports.tier, ports.pool, ports.cache, &cost_, ports.probe,
                ports.backend->kv_layout().block_bytes()},
               options.max_tier_stores) {
  for (const MeasuredStep& step : options_.measured) {
    step_times_.Observe(step.size, step.took);
  }
  CHECK(ports_.tier == nullptr || ports_.timers != nullptr);
  const BackendCaps& caps = ports_.backend->caps();
  options_.max_rows = std::min(options_.max_rows, caps.max_rows);
  options_.max_sequences = std::min(options_.max_sequences, caps.max_sequences);
  CHECK(options_.max_rows > 0 && options_.max_sequences > 0 &&
        options_.prefill_chunk > 0);
}

EngineLoop::~EngineLoop() {
  for (auto& [id, entry] : entries_) {
    EndAsking(entry);
    if (entry.fetch.has_value()) EndFetch(entry, false);
  }
}

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
  EndAsking(it->second);
  if (it->second.fetch.has_value()) {
    Sometimes<"a sequence left while its pages came up">();
    EndFetch(it->second, false);
  }
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
  const BlockCounts counts = ports_.pool->counts();
  return counts.free + counts.cached + ports_.pool->kept();
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
  load.costs = step_times_.costs();
  for (const auto& [id, entry] : entries_) {
    if (entry.parked) continue;
    ++(entry.running ? load.running : load.waiting);
    int left = entry.sequence->length() - entry.sequence->computed;
    if (left > 1) load.queued_tokens += left;
  }
  return load;
}

void EngineLoop::CountBlocks(BlockCensus& census) const {
  for (const auto& [id, entry] : entries_) census.Add(entry.sequence->blocks);
  census.Add(until_step_ends_);
  traffic_.CountBlocks(census);
}

bool EngineLoop::Tick() {
  bool progress = PollTier();
  progress |= DrainBackend();
  if (!in_flight_ && MayBeginStep()) {
    progress |= SubmitNext();
    if (!in_flight_) turns_.Idle();
  }
  // After the step has its blocks: these are in nobody's way.
  progress |= traffic_.StoreCold();
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
  if (options_.itl_target > absl::ZeroDuration()) {
    view.step_target = options_.itl_target;
    view.step_time = [this](const StepSize& work) {
      return step_times_.Predict(work);
    };
  }
  return view;
}

RequestId EngineLoop::EarliestWaiting() const {
  std::optional<RequestId> earliest;
  for (const auto& [id, entry] : entries_) {
    if (entry.parked && entry.after_draw != AfterDraw::kWait) continue;
    const RequestId request = entry.sequence->request().id;
    earliest = std::min(earliest.value_or(request), request);
  }
  CHECK(earliest.has_value()) << "nobody waits";
  return *earliest;
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
  view.limit = LimitOf(entry);
  view.copies_tail = entry.running && CopiesTail(s);
  return view;
}

SharedBlocks EngineLoop::SharedOf(const Entry& entry) const {
  const Sequence& s = *entry.sequence;
  SharedBlocks shared;
  if (entry.running) {
    for (const BlockHold& hold : s.blocks) {
      // The tier, too, holds what it still writes.
      shared.held +=
          ports_.pool->Users(hold.ref()) > 1 ||
          (entry.fetch.has_value() &&
           ports_.pool->StateOf(hold.index()) == BlockState::kInTransfer);
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
  EndAsking(entry);
  if (entry.fetch.has_value()) EndFetch(entry, false);
  // Its blocks hold what came, and they go.
  entry.fetch.reset();
  s.blocks.clear();
  s.computed = 0;
  s.published = 0;
  entry.running = false;
  Sometimes<"a sequence was preempted">();
  ports_.probe->Preempted();
}

void EngineLoop::Admit(SequenceId id, Entry& entry) {
  Sequence& s = *entry.sequence;
  s.blocks = ports_.cache->Match(s.root(), s.tokens(), ReusableBlocks(s));
  s.computed = static_cast<int>(s.blocks.size()) * kBlockTokens;
  s.published = static_cast<int>(s.blocks.size());
  entry.running = true;
  entry.first_look = !s.looked_up;
  if (!s.looked_up) {
    s.looked_up = true;
    s.cached_tokens = std::min(s.computed, s.prompt_tokens());
    ports_.probe->PrefixLooked(s.prompt_tokens(), s.cached_tokens);
  }
  AcquireFromTier(id, entry);
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
