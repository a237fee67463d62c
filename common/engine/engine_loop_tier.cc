#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/engine/acquisition.h"
#include "common/engine/engine_loop.h"
#include "common/model/kv_layout.h"

// What the engine gets from the tier below its pool. A sequence that was
// admitted holds the blocks that pages are fetched into and computes up to the
// first of them; others go on meanwhile.

namespace penstock {
namespace {

// A fetch is late after so many times what was predicted.
constexpr double kPatience = 4;

}  // namespace

int EngineLoop::LimitOf(const Entry& entry) const {
  if (entry.asking != 0) return entry.sequence->computed;
  if (!entry.fetch.has_value()) return TierFetch::kNoLimit;
  return entry.fetch->Limit(entry.sequence->computed);
}

bool EngineLoop::PollTier() {
  bool progress = false;
  const size_t under_way = traffic_.under_way();
  while (auto arrival = traffic_.Poll()) {
    progress = true;
    Entry& entry = entries_.at(arrival->owner);
    if (!arrival->status.ok()) {
      Sometimes<"a page that the tier could not give was computed">();
    }
    entry.fetch->SetPage(arrival->page, arrival->status.ok());
    SequenceListener* listener = entry.listener;
    if (SkipFetched(entry)) listener->OnComputed(entry.sequence->computed);
  }
  // What only ended may be what an allocation waits for.
  progress |= traffic_.under_way() != under_way;
  std::vector<SequenceId> asking;
  for (const auto& [id, entry] : entries_) {
    if (entry.asking != 0) asking.push_back(id);
  }
  for (SequenceId id : asking) {
    Entry& entry = entries_.at(id);
    AcquireFromTier(id, entry);
    progress |= entry.asking == 0;
  }
  return progress;
}

void EngineLoop::AcquireFromTier(SequenceId id, Entry& entry) {
  Sequence& s = *entry.sequence;
  const int have = static_cast<int>(s.blocks.size());
  const int most = ReusableBlocks(s);
  if (!traffic_.usable() || most <= have) {
    EndAsking(entry);
    return;
  }
  std::vector<BlockHash> chain;
  for (int i = have; i < most; ++i) {
    chain.push_back(s.HashOf(i, *ports_.hasher));
  }
  const TierLookup below = traffic_.Lookup(chain);
  CHECK(below.blocks >= 0 && below.blocks <= most - have);
  if (!below.asking) {
    EndAsking(entry);
    StartFetch(id, entry, below);
  } else if (entry.asking == 0) {
    Sometimes<"a sequence waited for a tier to say what it holds">();
    entry.asking = ports_.timers->Schedule(
        ports_.clock->Now() + options_.tier_answer_timeout,
        [this, id] { entries_.at(id).asking = 0; });
  }
}

void EngineLoop::StartFetch(SequenceId id, Entry& entry,
                            const TierLookup& below) {
  Sequence& s = *entry.sequence;
  const int have = static_cast<int>(s.blocks.size());
  Acquisition plan = PlanAcquisition({have, below, Pace()}, cost_);
  std::optional<std::vector<BlockHold>> fresh;
  if (plan.fetches()) fresh = Allocate(plan.fetch_until - have);
  const bool fetches = fresh.has_value();
  const int pages = fetches ? plan.fetch_until - plan.compute_until : 0;
  ports_.probe->TierLooked(ReusableBlocks(s) - have, below.blocks, pages);
  if (!fetches) return;
  for (BlockHold& hold : *fresh) s.blocks.push_back(std::move(hold));
  std::vector<TierRead> reads(pages);
  for (int i = 0; i < pages; ++i) {
    const int block = plan.compute_until + i;
    TierKey& key = reads[i].key;
    key.hash = s.HashOf(block, *ports_.hasher);
    key.parent = block == 0 ? s.root() : s.HashOf(block - 1, *ports_.hasher);
    std::copy_n(s.tokens().begin() + block * kBlockTokens, kBlockTokens,
                key.tokens.begin());
    reads[i].into = s.blocks[block].ref();
  }
  entry.fetch.emplace(traffic_.Fetch(id, std::move(reads)), plan.compute_until,
                      pages);
  entry.fetch->counts = entry.first_look;
  entry.fetch->deadline = ports_.timers->Schedule(
      ports_.clock->Now() + options_.tier_fetch_timeout + plan.took * kPatience,
      [this, id] { GiveUpFetch(id); });
}

void EngineLoop::GiveUpFetch(SequenceId id) {
  Entry& entry = entries_.at(id);
  Sometimes<"pages that came up too late were computed">();
  entry.fetch->deadline = 0;
  for (int i = 0; i < entry.fetch->pending(); ++i) {
    ports_.probe->PageNotFetched(absl::StatusCode::kDeadlineExceeded);
  }
  EndFetch(entry, true);
}

void EngineLoop::EndAsking(Entry& entry) {
  if (entry.asking != 0) ports_.timers->Cancel(std::exchange(entry.asking, 0));
}

void EngineLoop::EndFetch(Entry& entry, bool late) {
  TierFetch& fetch = *entry.fetch;
  Sequence& s = *entry.sequence;
  if (fetch.deadline != 0) {
    ports_.timers->Cancel(std::exchange(fetch.deadline, 0));
  }
  if (fetch.pending() > 0) {
    // Only blocks from the first that is missing on; no step reaches there.
    const int keeps = fetch.GiveUp();
    s.blocks.erase(s.blocks.begin() + keeps, s.blocks.end());
    traffic_.Drop(fetch.ticket(), late);
  }
  if (fetch.Over(s.computed)) entry.fetch.reset();
}

bool EngineLoop::SkipFetched(Entry& entry) {
  if (!entry.fetch.has_value()) return false;
  TierFetch& fetch = *entry.fetch;
  Sequence& s = *entry.sequence;
  const int before = s.computed;
  s.computed = fetch.Skip(before);
  if (fetch.counts) {
    s.cached_tokens += std::min(s.computed, s.prompt_tokens()) -
                       std::min(before, s.prompt_tokens());
  }
  Publish(s);
  if (fetch.pending() == 0) EndFetch(entry, false);
  return s.computed > before;
}

double EngineLoop::Pace() const {
  StepSize chunk;
  chunk.Add(options_.prefill_chunk, 0, 0);
  const absl::Duration by_cost = cost_.Prefill(options_.prefill_chunk, 0);
  if (by_cost == absl::ZeroDuration()) return 1;
  return absl::FDivDuration(step_times_.Predict(chunk), by_cost);
}

}  // namespace penstock
