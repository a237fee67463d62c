// How RouterCore takes requests in and lets them wait for their first place.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/base/status_macros.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"
#include "router/core/router_core.h"

namespace penstock {
namespace {

// Longer answers are rarely as long as they may be.
constexpr int kTypicalAnswer = 256;

int64_t WorkOf(const GenerateRequest& request) {
  return static_cast<int64_t>(request.prompt.size()) +
         int64_t{std::max(1, request.answers())} *
             std::min(request.stop.max_tokens, kTypicalAnswer);
}

// Of the answer, that must be made before it can end.
int LeastTokens(const GenerateRequest& request) {
  const StopConditions& stop = request.stop;
  const bool fixed =
      stop.ignore_eos && stop.stop_ids.empty() && stop.stop_strings.empty();
  return fixed ? stop.max_tokens
               : std::min(stop.max_tokens, std::max(1, stop.min_tokens));
}

bool MayBePlacedLater(const absl::Status& status, bool hopeful) {
  const ErrorReason reason = ErrorInfoOf(status).reason;
  return reason == ErrorReason::kQueueFull ||
         (reason == ErrorReason::kNoWorkers && hopeful);
}

}  // namespace

AdmissionQueue::Options RouterCore::QueueOptions(const Options& options) {
  AdmissionQueue::Options queue;
  queue.max_queued = options.max_queued;
  queue.max_age = options.max_queue_age;
  queue.tenants = options.tenants;
  queue.others = options.other_tenants;
  return queue;
}

// --- clients ----------------------------------------------------------------

absl::StatusOr<RequestId> RouterCore::Submit(GenerateRequest request,
                                             ClientSink* client) {
  CHECK(client != nullptr && !request.prompt.empty());
  auto reject = [&](absl::Status status) {
    ports_.probe->RequestRejected(ErrorInfoOf(status).reason);
    return status;
  };
  if (draining_) {
    return reject(MakeError(ErrorReason::kDraining,
                            "this router is shutting down: use another", "",
                            options_.retry_after));
  }
  auto owned = std::make_unique<Request>();
  Request& r = *owned;
  r.request = std::move(request);
  r.request.id = DrawRequestId();
  r.client = client;
  r.submitted = ports_.clock->Now();
  r.deadline = r.submitted + std::min(r.request.timeout, options_.max_timeout);
  r.arrival = next_arrival_++;
  HashHistory(r);
  r.believed = BelievedCached(r.request, r.chain);
  FollowGuard();
  if (absl::Status late = CheckInTime(r, absl::ZeroDuration()); !late.ok()) {
    return reject(late);
  }

  std::optional<Placement> placement;
  // Nobody is overtaken who could run as well.
  if (running_ < options_.max_running && admission_.MayRun(r.request.tenant) &&
      !admission_.Front().has_value()) {
    absl::StatusOr<Placement> placed = Place(r, {});
    if (placed.ok()) {
      placement = *std::move(placed);
    } else if (!MayBePlacedLater(placed.status(), Hopeful())) {
      return reject(placed.status());
    }
  }
  Request* displaced = nullptr;
  if (!placement.has_value()) {
    absl::StatusOr<Request*> queued = Enqueue(r);
    if (!queued.ok()) return reject(queued.status());
    displaced = *queued;
  }
  const RequestId id = r.id();
  requests_.emplace(id, std::move(owned));
  r.deadline_timer = ports_.timers->Schedule(r.deadline, [this, &r] {
    Abort(r, MakeError(
                 ErrorReason::kDeadline,
                 absl::StrCat("not done within ",
                              absl::FormatDuration(r.deadline - r.submitted))));
  });
  ports_.probe->RequestStarted(id, static_cast<int>(r.request.prompt.size()));
  if (placement.has_value()) Start(r, *placement);
  ReportInFlight();
  WatchHope();
  WatchQueue();
  if (displaced != nullptr) {
    Sometimes<"a waiting request made room for another">();
    End(*displaced, QueueFull("others go first", displaced->request));
  }
  return id;
}

void RouterCore::Cancel(RequestId id) {
  auto it = requests_.find(id);
  if (it == requests_.end()) return;
  Abort(*it->second,
        MakeError(ErrorReason::kCancelled, "the client cancelled"));
}

RequestId RouterCore::DrawRequestId() {
  RequestId id;
  do {
    id = RequestId(ports_.random->Next());
  } while (!id || requests_.contains(id));
  return id;
}

void RouterCore::HashHistory(Request& r) {
  r.chain = ChainOf(r.request, r.delivered.History(r.request));
}

std::vector<BlockHash> RouterCore::ChainOf(
    const GenerateRequest& request, absl::Span<const TokenId> tokens) const {
  return ports_.hasher->Chain(
      ports_.hasher->Root(
          {options_.workers.content, "", request.tenant, request.cache_salt}),
      tokens);
}

// --- deadlines --------------------------------------------------------------

int RouterCore::BelievedCached(const GenerateRequest& request,
                               absl::Span<const BlockHash> chain) const {
  if (request.prompt_logprobs >= 0) return 0;  // computed in full
  // The last token is always computed.
  return std::min(workers_.prefixes().Match(chain).deepest() * kBlockTokens,
                  static_cast<int>(request.prompt.size()) - 1);
}

absl::Duration RouterCore::LeastService(const GenerateRequest& request,
                                        int cached) const {
  return forecast_.AtLeast(options_.workers.work.Service(
      static_cast<int>(request.prompt.size()), cached, LeastTokens(request)));
}

absl::Duration RouterCore::PredictedService(
    const GenerateRequest& request) const {
  return LeastService(
      request, BelievedCached(request, ChainOf(request, request.prompt)));
}

absl::Status RouterCore::CheckInTime(const Request& r,
                                     absl::Duration wait) const {
  const absl::Duration service = LeastService(r.request, r.believed);
  const absl::Duration left = r.deadline - ports_.clock->Now();
  if (wait + service <= left) return absl::OkStatus();
  Sometimes<"a request that could not be done in time was refused">();
  const auto text = [](absl::Duration duration) {
    return absl::FormatDuration(absl::Ceil(duration, absl::Milliseconds(1)));
  };
  return MakeError(
      ErrorReason::kDeadline,
      absl::StrCat("it has ", text(left), " left and would wait for ",
                   text(wait), " and take ", text(service),
                   " at least: ask for less, or give it longer"),
      "", wait);
}

// --- waiting ----------------------------------------------------------------

absl::StatusOr<RouterCore::Request*> RouterCore::Enqueue(Request& r) {
  RETURN_IF_ERROR(CheckInTime(r, PredictedWait(r.request)));
  AdmissionQueue::Entry entry;
  entry.id = r.arrival;
  entry.tenant = r.request.tenant;
  entry.priority = r.request.priority;
  entry.work = WorkOf(r.request);
  entry.since = r.submitted;
  absl::StatusOr<std::optional<AdmissionQueue::Id>> pushed =
      admission_.Push(std::move(entry));
  if (!pushed.ok()) return QueueFull(pushed.status().message(), r.request);
  Request* displaced = nullptr;
  if (pushed->has_value()) {
    displaced = waiting_.extract(**pushed).mapped();
    displaced->waits = false;
  }
  waiting_.emplace(r.arrival, &r);
  r.waits = true;
  return displaced;
}

void RouterCore::Dequeue(Request& r) {
  if (std::exchange(r.waits, false)) {
    admission_.Remove(r.arrival);
    waiting_.erase(r.arrival);
  }
  if (r.queued.has_value()) {
    again_.erase(*r.queued);
    r.queued.reset();
  }
}

absl::Status RouterCore::QueueFull(absl::string_view why,
                                   const GenerateRequest& request) const {
  return MakeError(
      ErrorReason::kQueueFull,
      absl::StrCat(running_, " requests run and ", queued(), " wait; ", why,
                   ": try again later"),
      "",
      std::clamp(PredictedWait(request), options_.retry_after,
                 std::max(options_.retry_after, options_.max_queue_age)));
}

absl::Duration RouterCore::PredictedWait(const GenerateRequest& request) const {
  return admission_.PredictedWait(request.tenant, request.priority,
                                  ports_.clock->Now());
}

// Who has waited for too long is told.
void RouterCore::WatchQueue() {
  ports_.timers->Cancel(std::exchange(queue_timer_, 0));
  const Instant due = admission_.next_expiry();
  if (due == Instant::Infinite()) return;
  queue_timer_ = ports_.timers->Schedule(due, [this] {
    queue_timer_ = 0;
    OnQueueAged();
  });
}

void RouterCore::OnQueueAged() {
  for (AdmissionQueue::Id id : admission_.Expired(ports_.clock->Now())) {
    auto it = waiting_.find(id);
    if (it == waiting_.end()) continue;  // an end before made a place for it
    Request& r = *it->second;
    End(r, QueueFull(absl::StrCat("this one did for ",
                                  absl::FormatDuration(ports_.clock->Now() -
                                                       r.submitted)),
                     r.request));
  }
  WatchQueue();
}

void RouterCore::Pump() {
  if (std::exchange(pumping_, true)) return;
  PumpRetries();
  PumpQueue();
  pumping_ = false;
  WatchHope();
  WatchQueue();
}

void RouterCore::PumpQueue() {
  while (running_ < options_.max_running) {
    const std::optional<AdmissionQueue::Id> next = admission_.Front();
    if (!next.has_value()) return;
    Request& r = *waiting_.at(*next);
    if (absl::Status late = CheckInTime(r, absl::ZeroDuration()); !late.ok()) {
      End(r, late);
      continue;
    }
    absl::StatusOr<Placement> placed = Place(r, {});
    if (!placed.ok() && MayBePlacedLater(placed.status(), Hopeful())) return;
    if (!placed.ok()) {
      End(r, placed.status());
      continue;
    }
    admission_.Pop(*next, ports_.clock->Now());
    waiting_.erase(*next);
    r.waits = false;
    Start(r, *placed);
    ReportInFlight();
  }
}

void RouterCore::RaiseHope() {
  hope_until_ = ports_.clock->Now() + options_.worker_patience;
}

// Who waits for workers is told when hope ends.
void RouterCore::WatchHope() {
  ports_.timers->Cancel(std::exchange(hope_timer_, 0));
  if (!Hopeful() || (waiting_.empty() && again_.empty())) return;
  hope_timer_ = ports_.timers->Schedule(hope_until_, [this] {
    hope_timer_ = 0;
    Pump();
  });
}

}  // namespace penstock
