#include "router/core/admission/worker_guard.h"

#include <algorithm>
#include <string>
#include <utility>

namespace penstock {

WorkerGuard::WorkerGuard(const Options& options)
    : options_(options),
      prefill_{{}, OutlierEjector(options.ejector)},
      decode_{{}, OutlierEjector(options.ejector)} {}

void WorkerGuard::Add(const WorkerKey& worker, WorkerRoles roles) {
  for (LegKind leg : {LegKind::kPrefill, LegKind::kDecode}) {
    if (!(leg == LegKind::kPrefill ? roles.prefill : roles.decode)) continue;
    if (Find(leg, worker) != nullptr) continue;  // the same life again
    pool(leg).members.insert_or_assign(
        worker.name, Member{worker, CircuitBreaker(options_.breaker)});
    pool(leg).ejector.Add(worker.name);
    dirty_ = true;
  }
}

void WorkerGuard::Remove(const WorkerKey& worker) {
  for (LegKind leg : {LegKind::kPrefill, LegKind::kDecode}) {
    if (Find(leg, worker) == nullptr) continue;
    pool(leg).members.erase(worker.name);
    pool(leg).ejector.Remove(worker.name);
    dirty_ = true;
  }
}

void WorkerGuard::Started(LegKind leg, const WorkerKey& worker, Instant now) {
  Member* member = Find(leg, worker);
  if (member == nullptr || Closed(*member, now)) return;
  member->breaker.OnStarted(now);
  dirty_ = true;
}

void WorkerGuard::Progressed(LegKind leg, const WorkerKey& worker,
                             Instant now) {
  Member* member = Find(leg, worker);
  if (member == nullptr || Closed(*member, now)) return;
  member->breaker.OnProgress(now);
  dirty_ = true;
}

void WorkerGuard::Ended(LegKind leg, const WorkerKey& worker, Verdict verdict,
                        Instant now) {
  Member* member = Find(leg, worker);
  if (member == nullptr) return;
  const bool was_closed = Closed(*member, now);
  member->breaker.OnEnded(verdict, now);
  dirty_ |= !was_closed || !Closed(*member, now);
  if (verdict == Verdict::kNeutral) return;
  dirty_ |=
      pool(leg).ejector.Record(worker.name, verdict == Verdict::kGood, now);
}

bool WorkerGuard::Closed(const Member& member, Instant now) {
  return member.breaker.state(now) == CircuitBreaker::State::kClosed;
}

std::vector<WorkerGuard::Change> WorkerGuard::Update(Instant now) {
  dirty_ = false;
  std::vector<Change> changes;
  UpdatePool(LegKind::kPrefill, now, changes);
  UpdatePool(LegKind::kDecode, now, changes);
  return changes;
}

void WorkerGuard::UpdatePool(LegKind leg, Instant now,
                             std::vector<Change>& changes) {
  Pool& all = pool(leg);
  all.ejector.Advance(now);
  auto wanted = [&](const Member& member) {
    return !member.breaker.Allows(now) || all.ejector.ejected(member.key.name);
  };
  const auto left =
      std::count_if(all.members.begin(), all.members.end(),
                    [&](const auto& entry) { return !wanted(entry.second); });
  all.panics =
      static_cast<double>(left) <
      options_.min_pool_share * static_cast<double>(all.members.size());
  for (auto& [name, member] : all.members) {
    const bool vetoed = wanted(member) && !all.panics;
    if (std::exchange(member.vetoed, vetoed) == vetoed) continue;
    changes.push_back({leg, member.key, vetoed});
  }
}

Instant WorkerGuard::next(Instant now) const {
  Instant next = std::min(prefill_.ejector.next(), decode_.ejector.next());
  for (const Pool* pool : {&prefill_, &decode_}) {
    for (const auto& [name, member] : pool->members) {
      if (now < member.breaker.half_open_at()) {
        next = std::min(next, member.breaker.half_open_at());
      }
    }
  }
  return next;
}

CircuitBreaker::State WorkerGuard::breaker(LegKind leg, const WorkerKey& worker,
                                           Instant now) const {
  const Member* member = Find(leg, worker);
  return member == nullptr ? CircuitBreaker::State::kClosed
                           : member->breaker.state(now);
}

bool WorkerGuard::ejected(LegKind leg, const WorkerKey& worker) const {
  return Find(leg, worker) != nullptr && pool(leg).ejector.ejected(worker.name);
}

WorkerGuard::Member* WorkerGuard::Find(LegKind leg, const WorkerKey& worker) {
  return const_cast<Member*>(std::as_const(*this).Find(leg, worker));
}

const WorkerGuard::Member* WorkerGuard::Find(LegKind leg,
                                             const WorkerKey& worker) const {
  const auto& members = pool(leg).members;
  auto it = members.find(worker.name);
  return it == members.end() || it->second.key != worker ? nullptr
                                                         : &it->second;
}

}  // namespace penstock
