#pragma once

#include <map>
#include <vector>

#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/peer/leg.h"
#include "common/peer/worker_report.h"
#include "router/core/admission/circuit_breaker.h"
#include "router/core/admission/outlier_ejector.h"

namespace penstock {

// Which workers get no leg of a kind, by how earlier ones went: an open breaker
// or an ejection. When that would leave less than a share of the pool, it is
// not single workers that are at fault, and all of them get work (panic). Pure:
// time is told.
class WorkerGuard {
 public:
  struct Options {
    CircuitBreaker::Options breaker;
    OutlierEjector::Options ejector;
    double min_pool_share = 0.5;
  };
  struct Change {
    LegKind leg = LegKind::kDecode;
    WorkerKey worker;
    bool vetoed = false;
    friend bool operator==(const Change&, const Change&) = default;
  };

  explicit WorkerGuard(const Options& options);

  // A new life begins without a past.
  void Add(const WorkerKey& worker, WorkerRoles roles);
  void Remove(const WorkerKey& worker);
  // Legs on workers. Unknown ones and other lives: no-op.
  void Started(LegKind leg, const WorkerKey& worker, Instant now);
  void Progressed(LegKind leg, const WorkerKey& worker, Instant now);
  void Ended(LegKind leg, const WorkerKey& worker, Verdict verdict,
             Instant now);

  // Update may have something to say already.
  bool dirty() const { return dirty_; }
  // Workers that are vetoed from now on, or no more, since the last call.
  std::vector<Change> Update(Instant now);
  // When Update has something to say though nothing happens.
  Instant next(Instant now) const;

  CircuitBreaker::State breaker(LegKind leg, const WorkerKey& worker,
                                Instant now) const;
  bool ejected(LegKind leg, const WorkerKey& worker) const;
  // All of the pool's vetoes are off.
  bool panics(LegKind leg) const { return pool(leg).panics; }

 private:
  struct Member {
    WorkerKey key;
    CircuitBreaker breaker;
    bool vetoed = false;
  };
  struct Pool {
    std::map<std::string, Member> members;  // by name
    OutlierEjector ejector;
    bool panics = false;
  };

  Pool& pool(LegKind leg) {
    return leg == LegKind::kPrefill ? prefill_ : decode_;
  }
  const Pool& pool(LegKind leg) const {
    return leg == LegKind::kPrefill ? prefill_ : decode_;
  }
  static bool Closed(const Member& member, Instant now);
  Member* Find(LegKind leg, const WorkerKey& worker);
  const Member* Find(LegKind leg, const WorkerKey& worker) const;
  void UpdatePool(LegKind leg, Instant now, std::vector<Change>& changes);

  Options options_;
  Pool prefill_, decode_;
  bool dirty_ = false;
};

}  // namespace penstock
