#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/peer/error_reason.h"
#include "tools/simulator/answer_truth.h"
#include "tools/simulator/sim_cluster.h"
#include "tools/simulator/sim_plan.h"

namespace penstock {

// The promises that hold after every event of a run, and those that hold at its
// end; docs/simulation.md names them. What costs time in proportion to a pool
// is looked at for one worker an event, chosen by a hash of the event's number;
// all else is looked at every time. Owned by the run; single-threaded.
class Invariants {
 public:
  // Both outlive this.
  Invariants(const SimPlan* plan, SimCluster* cluster);

  // A request that the router took; `planned` is the plan's.
  void Watch(const SimClient* client, const SimRequest& planned);

  // The router tries a request again, after an attempt that ended so.
  void OnRetry(RequestId request, ErrorReason reason);

  // One that the router of that name did not take, and why.
  std::optional<Violation> CheckRefusal(const SimRequest& planned,
                                        const std::string& router,
                                        const absl::Status& status) const;

  // The first promise that is broken now.
  std::optional<Violation> AfterEvent();

  // Once nothing is left to do and every lease has run out.
  std::optional<Violation> AtEnd();

  // Of the watched ones.
  int open() const { return open_; }
  // By all workers, dead ones included.
  int64_t rows_computed() const { return rows_computed_; }
  // Whom the run waits for, for a report that it waits too long.
  std::string OpenRequests() const;
  // What each worker holds, and what waits there.
  std::string Workers() const;

 private:
  struct Watched {
    const SimClient* client = nullptr;
    const SimRequest* planned = nullptr;
    AnswerTruth truth;
    Instant submitted, last_progress;
    int64_t heard = 0;
    bool closed = false;
  };

  std::optional<Violation> CheckClients();
  std::optional<Violation> CheckDeadline(const Watched& watched) const;
  std::optional<Violation> CheckReason(const Watched& watched) const;
  bool FitsNowhere(const SimRequest& planned, int blocks) const;
  bool MadeRoom(const Watched& watched) const;
  bool WaitsTooLong(const SimRequest& planned, const RouterCore& router) const;
  // The living one that has not begun with it; null: none.
  const RouterCore* RouterOf(const Watched& watched) const;
  bool IsLate(const GenerateRequest& request, absl::Duration since,
              const RouterCore* router) const;
  // A write that may still land finds its page.
  std::optional<Violation> CheckPagesInFlight() const;
  std::optional<Violation> CheckWorkers();
  std::optional<Violation> CheckWorker(SimWorker& worker) const;
  // Blocks against their holders, tables against their bounds.
  std::optional<Violation> CheckTables(const SimWorker& worker) const;
  // No attempt's tokens are made at two workers.
  std::optional<Violation> CheckOwners() const;
  void OnLand(const WorkerKey& to, TransferId transfer, BlockRef block);
  std::optional<Violation> CheckRouter(const RouterCore& router) const;
  std::optional<Violation> CheckProgress();
  // A hash of the event's number.
  uint64_t Draw() const;
  // True at one event of `every`.
  bool Sampled(uint64_t every) const { return Draw() / 64 % every == 0; }
  // A step of a worker was made to fail before now.
  bool StepFailed() const;
  // Something is wrong now, or was until a while ago.
  bool Troubled() const;
  // When the last fault that has begun was over; infinite: it is not.
  absl::Duration CalmSince() const;

  const SimPlan* plan_;
  SimCluster* cluster_;
  // From the start of the run; what lasts to its end, infinite.
  struct Window {
    absl::Duration from, to;
  };
  std::vector<Window> faults_;
  absl::Duration
      router_stopped_;           // all, in all: frozen, behind by their clocks
  absl::Duration clocks_ahead_;  // in all, of all hosts
  int least_blocks_ = 0;         // of a worker's pool
  int most_decode_blocks_ = 0;   // of one that decodes
  std::vector<std::unique_ptr<Watched>> watched_;
  size_t first_open_ = 0;  // all before it are closed
  int open_ = 0;
  uint64_t event_ = 0;
  std::optional<Violation> landed_, retried_;
  std::map<WorkerKey, int64_t> rows_;  // computed by each when last looked at
  int64_t rows_computed_ = 0;
  Instant last_rows_at_;  // when they became more
};

}  // namespace penstock
