#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/env/clock.h"
#include "router/core/admission/drain_rate.h"

namespace penstock {

// What one tenant may have beside others.
struct TenantLimits {
  int weight = 1;       // of the capacity, among those that want more than it
  int max_running = 0;  // requests at once; 0: any number
  int max_queued = 0;   // requests that wait; 0: as many as the queue holds
};

// Requests that wait for their first place. A higher priority goes first;
// within one, tenants take turns by deficit round robin, so that each gets its
// weight's share of the work. Who takes up most of a full queue for its weight
// makes room. Pure bookkeeping: knows no requests but by number.
class AdmissionQueue {
 public:
  using Id = uint64_t;  // in order of arrival, each once
  struct Options {
    int max_queued = 1024;
    // Who has waited longer is given up: its client has, too, or will.
    absl::Duration max_age = absl::Minutes(1);
    // Work that one turn brings for each unit of weight. Smaller than a
    // request: a turn may have to be waited for several times.
    int64_t quantum = 512;
    std::map<std::string, TenantLimits> tenants;
    TenantLimits others;  // each tenant that has no name there
  };
  struct Entry {
    Id id = 0;
    std::string tenant;
    int priority = 0;
    int64_t work = 1;  // positive: tokens, say
    Instant since;
  };

  // INVALID_ARGUMENT names an option out of range.
  static absl::Status Validate(const Options& options);
  // Precondition: the options are valid.
  explicit AdmissionQueue(Options options);

  // Takes a request, or says kQueueFull: it would go before its turn came, its
  // tenant has too many, or it is the first to make room. The number is one
  // that had to go instead: it is not in the queue any more.
  absl::StatusOr<std::optional<Id>> Push(Entry entry);

  // Whose turn it is; nullopt: nobody waits who may run. Stays the same until
  // something is pushed, removed, began or ended.
  std::optional<Id> Front();
  // Takes out what Front gave: its turn is used.
  void Pop(Id id, Instant now);
  // Takes out without a turn; unknown: no-op.
  void Remove(Id id);

  // The requests that have waited for too long, and when the next one has.
  std::vector<Id> Expired(Instant now) const;
  Instant next_expiry() const;

  // A request of the tenant runs from now on, or no more: whether or not it
  // waited here.
  void Began(const std::string& tenant);
  void Ended(const std::string& tenant);
  bool MayRun(const std::string& tenant) const;

  // How long a new request would wait here, by how fast others went; zero when
  // nothing is known of that.
  absl::Duration PredictedWait(const std::string& tenant, int priority,
                               Instant now) const;

  int size() const { return static_cast<int>(index_.size()); }
  bool empty() const { return index_.empty(); }
  // INTERNAL says which count does not add up.
  absl::Status Check() const;

 private:
  struct Line {  // of one tenant at one priority
    std::map<Id, Entry> entries;
    int64_t work = 0;
    int64_t deficit = 0;
  };
  struct Level {
    std::map<std::string, Line> lines;
    std::vector<std::string> ring;  // whose turn it is, and who follows
    bool given = false;             // the first has had this turn's quantum
    int64_t work = 0;
  };
  struct Where {
    int priority = 0;
    std::string tenant;
    Instant since;
  };

  const TenantLimits& LimitsOf(const std::string& tenant) const;
  int64_t TurnOf(const std::string& tenant) const;
  int QueuedOf(const std::string& tenant) const;
  // The line that can go on, having had as many turns as it takes.
  Line* Turn(Level& level);
  void NextInRing(Level& level);
  // Rounds in which nobody could go on, all at once.
  void SkipRounds(Level& level);
  absl::StatusOr<std::optional<Id>> MakeRoomFor(const Entry& entry) const;
  void Erase(Id id, bool used);

  const Options options_;
  std::map<int, Level, std::greater<int>> levels_;  // by priority
  std::map<Id, Where> index_;
  std::map<std::string, int> running_;
  DrainRate rate_;
};

}  // namespace penstock
