#include "router/core/cluster_view.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

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
  const auto at =
      std::lower_bound(workers.begin(), workers.end(), name,
                       [](const WorkerView& w, const std::string& wanted) {
                         return w.info.key.name < wanted;
                       });
  return at == workers.end() || at->info.key.name != name ? nullptr : &*at;
}

const WorkerView* ClusterView::Find(const WorkerKey& worker) const {
  const WorkerView* found = FindName(worker.name);
  return found == nullptr || found->info.key != worker ? nullptr : found;
}

std::vector<int> ClusterView::CachedBlocks(
    absl::Span<const BlockHash> chain) const {
  std::vector<int> cached(workers.size());
  if (prefixes == nullptr) return cached;
  const PrefixMatch match = prefixes->Match(chain);
  if (match.empty()) return cached;
  for (size_t i = 0; i < workers.size(); ++i) {
    cached[i] = match.BlocksOf(workers[i].slot);
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

void ClusterView::Rebuild(const WorkEstimate& work, int requests_per_sequence) {
  size_t slots = 0;
  for (const WorkerView& worker : workers) {
    slots = std::max<size_t>(slots, worker.slot + 1);
  }
  WorkerColumns& c = columns;
  for (SlotSet* set : {&c.prefill, &c.decode, &c.ready, &c.draining, &c.on_time,
                       &c.room, &c.vetoed_prefill}) {
    *set = SlotSet(slots);
  }
  c.ahead.assign(slots, 0);
  c.pressure.assign(slots, 0);
  c.requests.assign(slots, 0);
  c.capacity.assign(slots, 0);
  c.context.assign(slots, 0);
  c.least_context = std::numeric_limits<int>::max();
  c.pairing.assign(slots, 0);
  c.name_hash.assign(slots, 0);
  c.least_capacity = std::numeric_limits<int64_t>::max();
  index_.assign(slots, 0);
  pairings_.clear();
  std::map<Pairing, int> numbers;
  for (size_t i = 0; i < workers.size(); ++i) {
    const WorkerView& worker = workers[i];
    const Pairing pairing = PairingOf(worker.info);
    const auto [number, added] =
        numbers.emplace(pairing, static_cast<int>(pairings_.size()));
    if (added) pairings_.push_back(pairing);
    c.pairing[worker.slot] = number->second;
    c.capacity[worker.slot] = CapacityOf(worker.info);
    c.least_capacity = std::min(c.least_capacity, c.capacity[worker.slot]);
    c.context[worker.slot] = worker.info.context_length > 0
                                 ? worker.info.context_length
                                 : std::numeric_limits<int>::max();
    c.least_context = std::min(c.least_context, c.context[worker.slot]);
    c.name_hash[worker.slot] = StableHash(worker.info.key.name);
    index_[worker.slot] = i;
    Refresh(worker, work, requests_per_sequence);
  }
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
      worker.PredictedTime(work.Ahead(info, worker.reported)));
  columns.pressure[slot] =
      MemoryPressure(worker.PredictedBlocks(), info.total_blocks);
  columns.requests[slot] = requests;
}

}  // namespace penstock
