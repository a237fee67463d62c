#include "router/core/cluster_view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/model/kv_layout.h"
#include "router/core/stable_hash.h"

namespace penstock {
namespace {

// A number of the last report, moved by what this router reserved and released
// since. Legs still on their way to the worker are missing in the report but
// not in `reserved`, which therefore is the floor.
template <typename T>
T Predict(bool fresh, T reported, T reserved, T reserved_at_report) {
  if (!fresh) return reserved;
  return std::max(reserved, reported + (reserved - reserved_at_report));
}

// Tokens of one sequence that the worker can hold, at most.
int64_t CapacityOf(const WorkerInfo& info) {
  if (info.context_length > 0 &&
      static_cast<int64_t>(BlocksFor(info.context_length)) <=
          info.total_blocks) {
    return std::numeric_limits<int64_t>::max();
  }
  return int64_t{info.total_blocks} * kBlockTokens;
}

}  // namespace

double MemoryPressure(int blocks, int total_blocks) {
  if (total_blocks <= 0) return 0;
  const double used =
      std::min(0.99, static_cast<double>(blocks) / total_blocks);
  return used / (1 - used);
}

LoadShare& LoadShare::operator+=(const LoadShare& other) {
  time += other.time;
  requests += other.requests;
  blocks += other.blocks;
  return *this;
}

LoadShare& LoadShare::operator-=(const LoadShare& other) {
  time -= other.time;
  requests -= other.requests;
  blocks -= other.blocks;
  return *this;
}

int WorkerView::PredictedRequests() const {
  return Predict(!suspect, reported.queued_requests + reported.active_requests,
                 reserved.requests, reserved_at_report.requests);
}

int WorkerView::PredictedBlocks() const {
  return Predict(!suspect, reported.total_blocks - reported.free_blocks,
                 reserved.blocks, reserved_at_report.blocks);
}

absl::Duration WorkerView::PredictedTime(absl::Duration reported_time) const {
  return Predict(!suspect, reported_time, reserved.time,
                 reserved_at_report.time);
}

const WorkerView* ClusterView::FindName(const std::string& name) const {
  const auto at = workers.find(name);
  return at == workers.end() ? nullptr : &at->second;
}

const WorkerView* ClusterView::Find(const WorkerKey& worker) const {
  const WorkerView* found = FindName(worker.name);
  return found == nullptr || found->info.key != worker ? nullptr : found;
}

std::vector<int> ClusterView::CachedBlocks(
    absl::Span<const BlockHash> chain) const {
  const PrefixMatch match =
      prefixes != nullptr ? prefixes->Match(chain) : PrefixMatch();
  std::vector<int> cached;
  for (const auto& [name, worker] : workers) {
    cached.push_back(match.BlocksOf(worker.slot));
  }
  return cached;
}

ClusterView::Pairing ClusterView::PairingOf(const WorkerInfo& info) {
  Pairing pairing = {info.layout, info.content, info.numerics, 0};
  for (const TransportKind kind : info.transports) {
    pairing.transports |= 1u << static_cast<int>(kind);
  }
  return pairing;
}

bool ClusterView::CanHandOff(int prefill_pairing, int decode_pairing) const {
  const Pairing& from = pairings_[prefill_pairing];
  const Pairing& to = pairings_[decode_pairing];
  return from.layout == to.layout && from.content == to.content &&
         from.numerics == to.numerics && (from.transports & to.transports) != 0;
}

std::optional<int> ClusterView::OnlyPairing() const {
  if (pairing_uses_.size() != 1) return std::nullopt;
  return pairing_uses_.begin()->second.number;
}

int ClusterView::NumberOf(const Pairing& pairing) {
  auto [use, added] = pairing_uses_.try_emplace(pairing);
  ++use->second.workers;
  if (!added) return use->second.number;
  if (free_pairings_.empty()) {
    use->second.number = pairings();
    pairings_.push_back(pairing);
  } else {
    use->second.number = free_pairings_.back();
    free_pairings_.pop_back();
    pairings_[use->second.number] = pairing;
  }
  return use->second.number;
}

void ClusterView::FitColumns(WorkerSlot slot) {
  if (slot < by_slot_.size()) return;
  const size_t slots = (slot / kSlotsAtOnce + 1) * kSlotsAtOnce;
  WorkerColumns& c = columns;
  for (SlotSet* set : {&c.prefill, &c.decode, &c.ready, &c.draining, &c.on_time,
                       &c.room, &c.vetoed_prefill}) {
    set->Resize(slots);
  }
  c.ahead.resize(slots);
  c.prefill_pace.resize(slots, 1);
  c.stretch.resize(slots, 1);
  c.requests.resize(slots);
  c.capacity.resize(slots);
  c.context.resize(slots);
  c.pairing.resize(slots);
  c.name_hash.resize(slots);
  by_slot_.resize(slots);
}

void ClusterView::NoteLeast() {
  if (capacities_.empty()) return;
  columns.least_capacity = *capacities_.begin();
  columns.least_context = *contexts_.begin();
}

void ClusterView::Add(WorkerView worker) {
  const WorkerSlot slot = worker.slot;
  FitColumns(slot);
  CHECK(by_slot_[slot] == nullptr) << "slot " << slot << " has a worker";
  const std::string name = worker.info.key.name;
  const auto [at, added] = workers.emplace(name, std::move(worker));
  CHECK(added) << "there is a worker " << name;
  by_slot_[slot] = &at->second;
  const WorkerInfo& info = at->second.info;
  columns.pairing[slot] = NumberOf(PairingOf(info));
  columns.capacity[slot] = CapacityOf(info);
  columns.context[slot] = info.context_length > 0
                              ? info.context_length
                              : std::numeric_limits<int>::max();
  columns.name_hash[slot] = StableHash(name);
  capacities_.insert(columns.capacity[slot]);
  contexts_.insert(columns.context[slot]);
  NoteLeast();
}

void ClusterView::Remove(const WorkerView& worker) {
  const WorkerSlot slot = worker.slot;
  WorkerColumns& c = columns;
  for (SlotSet* set : {&c.prefill, &c.decode, &c.ready, &c.draining, &c.on_time,
                       &c.room, &c.vetoed_prefill}) {
    set->Set(slot, false);
  }
  capacities_.erase(capacities_.find(c.capacity[slot]));
  contexts_.erase(contexts_.find(c.context[slot]));
  NoteLeast();
  auto use = pairing_uses_.find(pairings_[c.pairing[slot]]);
  if (--use->second.workers == 0) {
    free_pairings_.push_back(use->second.number);
    pairing_uses_.erase(use);
  }
  by_slot_[slot] = nullptr;
  workers.erase(workers.find(worker.info.key.name));
}

void ClusterView::Refresh(const WorkerView& worker, const WorkEstimate& work,
                          int requests_per_sequence) {
  const WorkerInfo& info = worker.info;
  const size_t slot = worker.slot;
  const int requests = worker.PredictedRequests();
  const int64_t most = int64_t{info.max_sequences} * requests_per_sequence;
  columns.prefill.Set(slot, info.roles.prefill && !worker.vetoed.prefill);
  columns.decode.Set(slot, info.roles.decode && !worker.vetoed.decode);
  columns.vetoed_prefill.Set(slot, worker.vetoed.prefill);
  columns.ready.Set(slot, worker.ready());
  columns.draining.Set(slot, worker.drains());
  columns.on_time.Set(slot, !worker.suspect);
  columns.room.Set(slot, most <= 0 || requests < most);
  columns.ahead[slot] = absl::ToDoubleSeconds(
      worker.PredictedTime(work.Ahead(info, worker.reported, worker.pace)));
  columns.prefill_pace[slot] = worker.pace.prefill;
  columns.stretch[slot] =
      worker.pace.decode *
      (1 + MemoryPressure(worker.PredictedBlocks(), info.total_blocks));
  columns.requests[slot] = requests;
}

}  // namespace penstock
