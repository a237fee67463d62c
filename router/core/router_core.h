#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "common/model/block_hash.h"
#include "common/model/generate_request.h"
#include "common/model/token_frame.h"
#include "common/peer/worker_report.h"
#include "router/core/admission/admission_queue.h"
#include "router/core/admission/service_forecast.h"
#include "router/core/admission/worker_guard.h"
#include "router/core/attempt.h"
#include "router/core/decision_journal.h"
#include "router/core/delivered.h"
#include "router/core/leg_source.h"
#include "router/core/router_ports.h"
#include "router/core/router_probe.h"
#include "router/core/routing_policy.h"
#include "router/core/worker_registry.h"

namespace penstock {

// The router's brain: knows the workers, places requests on them, relays their
// tokens, and ends every request exactly once. Single-threaded: every call, and
// every timer, on one loop thread. Calls out to sinks, legs and the probe must
// not call back in; what they cause is posted to the loop.
class RouterCore {
 public:
  struct Options {
    WorkerRegistry::Options workers;
    int max_running = 256;  // requests with an attempt under way
    int max_queued = 1024;  // requests that wait for their first place
    // Who has waited for longer is refused after all, and so is at once who
    // would have to, or beyond its deadline.
    absl::Duration max_queue_age = absl::Minutes(1);
    // Shares of the work between tenants that wait, and bounds on each.
    std::map<std::string, TenantLimits> tenants;
    TenantLimits other_tenants;
    // Legs say which other worker has more of the prompt.
    bool name_sources = true;
    // When workers get no more work for their failures.
    WorkerGuard::Options guard;
    // Attempts in a row that give the client nothing new; any token begins the
    // count anew. A worker that drains before it begins does not count, nor one
    // that is full when the client has tokens already.
    int max_attempts = 3;
    // Requests on a later attempt that has given nothing yet, or in the pause
    // before one: at most this share of those running, or this many (at least
    // 1) if that is more. What is beyond waits. Moves off a draining worker do
    // not count.
    double retry_share = 0.2;
    int retry_floor = 8;
    // Before another attempt when no other worker can take it; drawn from half
    // of it to all, doubled for each fruitless attempt.
    absl::Duration retry_pause = absl::Milliseconds(100);
    // After any worker's coming or going, requests wait this long for a place
    // that nobody offers now.
    absl::Duration worker_patience = absl::Seconds(10);
    absl::Duration max_timeout = absl::Minutes(10);  // caps the client's
    absl::Duration retry_after = absl::Seconds(1);   // advice when full
    // How long a failed attempt waits for its other leg to end by itself: to
    // say why, and what its worker keeps. Then that leg is cancelled.
    absl::Duration settle_grace = absl::Milliseconds(50);
    // How long a leg may take to show what its partner's end means: that decode
    // has the KV although prefill failed, or that prefill made the only token.
    // Also how long it may stay open when the answer is complete.
    absl::Duration await_grace = absl::Seconds(5);
    // One of so many placements is recorded with what there was to choose from,
    // for logs and metrics; 0: none.
    int decision_sample = 64;
  };
  // All must outlive the core.
  struct Ports {
    const Clock* clock = nullptr;
    Timers* timers = nullptr;
    Random* random = nullptr;
    const BlockHasher* hasher = nullptr;  // of the cluster's key
    const RoutingPolicy* policy = nullptr;
    WorkerLegs* legs = nullptr;
    RouterProbe* probe = nullptr;
  };

  // INVALID_ARGUMENT names an option out of range. Ports must not be null.
  static absl::StatusOr<std::unique_ptr<RouterCore>> Create(
      const Options& options, const Ports& ports);
  // Requests that have not ended are dropped: their sinks hear nothing.
  ~RouterCore();

  // Clients. ------------------------------------------------------------

  // Takes a validated request; its id is drawn here and names it from now on.
  // On success `client` hears exactly one OnFinished, never from inside this
  // call, and must live until then. On an error it hears nothing: kDraining,
  // kNoWorkers, kKvTooSmall, kDeadline when it could not be done in time, or
  // kQueueFull, the last two with advice when to come back.
  absl::StatusOr<RequestId> Submit(GenerateRequest request, ClientSink* client);

  // Both legs are cancelled and the client hears kCancelled before this
  // returns. Unknown and ended requests are a no-op.
  void Cancel(RequestId request);

  // Legs, as WorkerLegs reports them. Events of legs whose request has ended
  // or moved on are absorbed. ----------------------------------------------

  void OnLegAccepted(LegId leg);
  void OnLegFrame(LegId leg, TokenFrame frame);
  void OnLegFinished(LegId leg, const absl::Status& status);

  // Workers; see WorkerRegistry for the errors. ---------------------------

  absl::Status OnRegister(const WorkerInfo& info);
  absl::Status OnLoad(const WorkerKey& worker, const WorkerLoad& load);
  // The worker's stream lives; it need not report its load. Else it is lost in
  // time.
  void OnAlive(const WorkerKey& worker) { workers_.Alive(worker); }
  CacheSync OnCacheEvents(const WorkerKey& worker,
                          absl::Span<const CacheEvent> events);
  CacheSync OnCacheSnapshot(const WorkerKey& worker,
                            const CacheSnapshot& snapshot);
  // The worker's stream broke. Its legs fail with kWorkerLost.
  void OnWorkerLost(const WorkerKey& worker, const absl::Status& why);

  // Process. ---------------------------------------------------------------

  // Refuses new requests; those taken go on, queued ones included. `when_idle`
  // runs once, when no request is left and every leg has ended.
  void Drain(std::function<void()> when_idle);
  bool draining() const { return draining_; }
  bool idle() const { return requests_.empty() && legs_.empty(); }

  int running() const { return running_; }
  int queued() const { return admission_.size(); }
  // How long such a request would wait now for its first place, as far as the
  // core can tell; zero when it cannot.
  absl::Duration PredictedWait(const GenerateRequest& request) const;
  // The least that serving it will take once it has its place, as fast as
  // others went of late; zero when the core cannot tell.
  absl::Duration PredictedService(const GenerateRequest& request) const;
  // Some ready worker decodes.
  bool CanServe() const;
  const WorkerRegistry& workers() const { return workers_; }
  const WorkerGuard& guard() const { return guard_; }

  // INTERNAL says which count does not add up: reservations against legs,
  // legs against requests, everything against zero when idle.
  absl::Status CheckAccounting() const;

 private:
  using WorkerNames = std::vector<std::string>;
  // Of those that failed: highest priority first, then order of arrival.
  using QueueKey = std::pair<int64_t, uint64_t>;

  struct Request {
    GenerateRequest request;
    std::vector<BlockHash> chain;  // of the tokens that an attempt begins with
    bool handed = false;           // the decode worker has had them
    ClientSink* client = nullptr;
    Instant submitted, began, deadline, last_frame;
    TimerId deadline_timer = 0;
    // Of the attempt's grace, or of the pause before the next one.
    TimerId wait_timer = 0;
    uint64_t arrival = 0;
    bool waits = false;              // for its first place, or
    std::optional<QueueKey> queued;  // for another one, or an attempt goes on
    std::optional<Attempt> attempt;  // the last one
    int attempts = 0;
    int fruitless = 0;      // of those, the last ones, with nothing delivered
    int believed = 0;       // prompt tokens cached somewhere when it came
    int refusals = 0;       // beside these: workers that would not begin
    bool retrying = false;  // it counts against the retry budget
    bool moving = false;    // the next attempt does not
    Instant not_before;     // of the next one
    absl::Status failure;   // of the last one
    std::vector<WorkerNames> avoid;  // after it; whom rather, first
    std::vector<KeptPrefix> kept;    // for this request, since earlier attempts
    bool admitted = false;           // the client was told
    Delivered delivered;
    FinishReason finish = FinishReason::kNone;
    Usage usage;

    RequestId id() const { return request.id; }
  };
  struct LegOwner {
    RequestId request;
    AttemptId attempt;
    LegKind kind = LegKind::kDecode;
  };

  RouterCore(const Options& options, const Ports& ports);

  absl::StatusOr<Placement> Place(const Request& request,
                                  absl::Span<const std::string> avoid);
  static int HistoryTokens(const Request& request);
  std::vector<KeptPrefix> KeptFor(const Request& request) const;
  RequestId DrawRequestId();
  // What happens to many at once happens in the same order each time.
  std::vector<RequestId> RequestsInOrder() const;
  void HashHistory(Request& request);
  std::vector<BlockHash> ChainOf(const GenerateRequest& request,
                                 absl::Span<const TokenId> tokens) const;
  // Prompt tokens that some worker has cached.
  int BelievedCached(const GenerateRequest& request,
                     absl::Span<const BlockHash> chain) const;
  absl::Duration LeastService(const GenerateRequest& request, int cached) const;
  // kDeadline: after such a wait it could not be done in time.
  absl::Status CheckInTime(const Request& request, absl::Duration wait) const;
  static AdmissionQueue::Options QueueOptions(const Options& options);
  // Takes the request into the queue. kQueueFull: there is no room for it. The
  // result had to make room, and is to be ended; null: nobody.
  absl::StatusOr<Request*> Enqueue(Request& request);
  void Dequeue(Request& request);
  // What is said to who cannot be taken.
  absl::Status QueueFull(absl::string_view why,
                         const GenerateRequest& request) const;
  void WatchQueue();
  void OnQueueAged();
  // Starts waiting requests while there is room for them: first those that
  // were under way already.
  void Pump();
  void PumpRetries();
  // True: a share of the budget was given up that others before were held up
  // for.
  bool PumpRetriesOnce();
  void PumpQueue();
  // Tells the guard how an attempt went. `step` as it ended; null: nobody
  // knows.
  void Judge(const Request& request, const AttemptStep* step);
  // An attempt has given something.
  void NoteProgress(const Request& request);
  // Vetoes follow the guard.
  void FollowGuard();
  // Workers come and go: a place that nobody offers now may be offered soon.
  bool Hopeful() const { return ports_.clock->Now() < hope_until_; }
  void RaiseHope();
  void WatchHope();
  void Start(Request& request, const Placement& placement);
  Attempt::Leg OpenLeg(const Request& request, LegKind kind,
                       const LegPlacement& placement);
  LegSource SourceFor(const Request& request,
                      const LegPlacement& placement) const;
  void SendLeg(const Request& request, LegKind kind, const Attempt::Leg& leg,
               const WorkerKey* partner, const LegSource& source);

  // The live request and attempt that a leg belongs to; null otherwise.
  Request* OwnerOf(LegId leg, LegKind* kind);
  void Execute(Request& request, AttemptStep step);
  void Deliver(Request& request, TokenFrame frame);
  void ArmGrace(Request& request, absl::Duration grace);
  void CancelLegs(Attempt& attempt);
  // Legs of a complete answer end by themselves, or are cancelled in a while.
  void WithdrawPredictions(const Request& r);
  void LetEnd(Attempt& attempt);
  void WatchEnding();
  void OnEndingDue();
  void OnAttemptFailed(Request& request, const AttemptStep& step);
  bool MayRetry(const Request& request, const absl::Status& status) const;
  bool RetryBudgetLeft() const;
  // The next attempt is in the budget, need not be, or could be.
  bool MayGoOn(const Request& request) const;
  // From now on it counts, unless it is a move. Precondition: MayGoOn.
  void BeginRetrying(Request& request);
  void EndRetrying(Request& request);
  // The end of an attempt that says nothing of the request: its worker only
  // would not begin with it. A request that has given tokens waits for a place
  // until its deadline.
  bool IsMereRefusal(const Request& request, const absl::Status& status) const;
  // Whom the next attempt leaves out, in order of preference.
  std::vector<WorkerNames> WhomToAvoid(const Request& request,
                                       Blame blame) const;
  // The first of the choices that leads to a place.
  absl::StatusOr<Placement> PlaceAvoiding(
      const Request& request, absl::Span<const WorkerNames> choices);
  void StartAgain(Request& request, const Placement& placement);
  // Until a later Pump finds it a place.
  void WaitForPlace(Request& request);
  // Legs that a worker has not begun with are placed anew where possible.
  // For any reason but draining, within the retry budget.
  void MoveWaitingLegs(const WorkerKey& worker, const absl::Status& why);
  bool ReportOnTime(const Placement& placement) const;
  // Cancels what is open, then ends the request.
  void Abort(Request& request, const absl::Status& status);
  void End(Request& request, const absl::Status& status);
  void OnHealthChanged(const WorkerKey& worker, WorkerHealth health);
  void OnSuspect(const WorkerKey& worker);
  void HandleLost(const WorkerKey& worker, const absl::Status& why);
  void ReportInFlight();
  void CheckDrained();

  const Options options_;
  const Ports ports_;
  WorkerRegistry workers_;
  DecisionJournal journal_;
  absl::flat_hash_map<RequestId, std::unique_ptr<Request>> requests_;
  AdmissionQueue admission_;
  std::map<AdmissionQueue::Id, Request*> waiting_;  // those in it, by arrival
  TimerId queue_timer_ = 0;
  ServiceForecast forecast_;
  WorkerGuard guard_;
  Instant guard_due_ = Instant::Infinite();
  TimerId guard_timer_ = 0;
  std::map<QueueKey, Request*> again_;  // those whose last attempt has failed
  // Until WorkerLegs ends them, which may be long after their request.
  absl::flat_hash_map<LegId, LegOwner> legs_;
  // Those of complete answers, and when they are cancelled; some may have
  // ended.
  std::deque<std::pair<Instant, LegId>> ending_;
  TimerId ending_timer_ = 0;
  LegId next_leg_ = 1;
  uint64_t next_arrival_ = 1;
  int running_ = 0;   // requests that had an attempt
  int retrying_ = 0;  // of those, the ones that count against the budget
  Instant hope_until_;
  TimerId hope_timer_ = 0;
  bool pumping_ = false;
  bool draining_ = false;
  std::function<void()> when_idle_;
};

}  // namespace penstock
