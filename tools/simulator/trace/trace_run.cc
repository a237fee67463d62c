#include "tools/simulator/trace/trace_run.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model/kv_layout.h"
#include "common/peer/error_reason.h"
#include "tools/simulator/trace/trace_prompt.h"

namespace penstock {
namespace {

// Of all workers together: what bookkeeping fits a machine.
constexpr int64_t kMaxBlocks = int64_t{1} << 28;
constexpr int64_t kMaxRequests = int64_t{1} << 30;
constexpr int kMaxWorkers = 4096;

absl::Status Check(const TraceRunOptions& o) {
  auto check = [](bool ok, absl::string_view what) {
    return ok ? absl::OkStatus() : absl::InvalidArgumentError(what);
  };
  RETURN_IF_ERROR(check(o.prefill_workers > 0 && o.decode_workers > 0 &&
                            o.prefill_workers < kMaxWorkers &&
                            o.decode_workers < kMaxWorkers &&
                            o.prefill_workers + o.decode_workers <= kMaxWorkers,
                        absl::StrCat("there must be a worker for each role and "
                                     "at most ",
                                     kMaxWorkers)));
  RETURN_IF_ERROR(check(o.requests >= 0 && o.requests <= kMaxRequests,
                        "too many requests"));
  RETURN_IF_ERROR(check(o.concurrency >= 0, "concurrency is negative"));
  RETURN_IF_ERROR(check(o.arrival_scale >= 1e-6 && o.arrival_scale <= 1e6,
                        "the arrival scale must be from 1e-6 to 1e6"));
  return check(o.timeout > absl::ZeroDuration(), "the timeout must be above 0");
}

class TraceRun {
 public:
  TraceRun(const std::vector<TraceRequest>& trace,
           const TraceRunOptions& options, int64_t requests)
      : trace_(trace), options_(options) {
    report_.requests = requests;
    // The next loop starts one mean gap after the last request.
    const auto n = static_cast<double>(trace.size());
    loop_time_ = trace.back().at * (n / std::max(1.0, n - 1));
  }

  absl::StatusOr<TraceReport> Run(const TraceClusterOptions& cluster) {
    RETURN_IF_ERROR(Begin(cluster));
    cluster_->RunUntil([this] { return ended_ == report_.requests; });
    report_.elapsed = cluster_->clock().Now() - Instant();
    report_.events = cluster_->events();
    report_.steps = cluster_->steps();
    report_.bytes_moved = cluster_->bytes_moved();
    if (std::string wrong = cluster_->Finish(); !wrong.empty()) {
      return absl::InternalError(wrong);
    }
    return std::move(report_);
  }

  absl::StatusOr<bool> Meets(double share, const TraceClusterOptions& cluster) {
    const double enough = share * static_cast<double>(report_.requests);
    const double few = static_cast<double>(report_.requests) - enough;
    RETURN_IF_ERROR(Begin(cluster));
    cluster_->RunUntil([&] {
      return static_cast<double>(report_.good) >= enough ||
             static_cast<double>(missed_) > few;
    });
    return static_cast<double>(report_.good) >= enough;
  }

 private:
  // What the client of one request sees.
  struct Client : ClientSink {
    Client(TraceRun* owner, Instant now) : run(owner), arrived(now) {}
    void OnAdmitted(const PlacementSummary&) override {}
    void OnFrame(TokenFrame frame) override { run->OnFrame(*this, frame); }
    void OnFinished(const absl::Status& status) override {
      run->OnFinished(*this, status);
    }

    TraceRun* run;
    Instant arrived, first, last;
    int tokens = 0;
    bool missed = false;  // it cannot be good any more
    Usage usage;
  };

  absl::Status Begin(const TraceClusterOptions& cluster) {
    ASSIGN_OR_RETURN(cluster_, TraceCluster::Create(cluster));
    if (options_.concurrency > 0) {
      FillUp();
    } else {
      ScheduleNext();
    }
    return absl::OkStatus();
  }

  void Miss(Client& client) { missed_ += !std::exchange(client.missed, true); }

  void ScheduleNext() {
    if (submitted_ == report_.requests) return;
    const auto size = static_cast<int64_t>(trace_.size());
    const absl::Duration due =
        (loop_time_ * (submitted_ / size) + trace_[submitted_ % size].at) /
        options_.arrival_scale;
    cluster_->After(due - (cluster_->clock().Now() - Instant()), [this] {
      SubmitNext();
      ScheduleNext();
    });
  }

  // Not from inside a client's call: the router must not be called back.
  void FillUp() {
    while (submitted_ < report_.requests &&
           submitted_ - ended_ < options_.concurrency) {
      SubmitNext();
    }
  }

  void SubmitNext() {
    const auto size = static_cast<int64_t>(trace_.size());
    const int64_t number = submitted_++;
    const TraceRequest& planned = trace_[number % size];
    clients_.emplace_back(this, cluster_->clock().Now());
    GenerateRequest request;
    request.prompt =
        TracePrompt(planned, number, number / size, SimModel::kVocabulary);
    request.stop.max_tokens = planned.output_tokens;
    request.stop.ignore_eos = true;
    request.sampling.seed =
        SimModel::Fold(options_.seed, static_cast<uint64_t>(number));
    request.timeout = options_.timeout;
    const auto taken =
        cluster_->router().Submit(std::move(request), &clients_.back());
    if (taken.ok()) return;
    ++ended_;
    Miss(clients_.back());
    ++report_.failures[absl::StrCat("refused ", OutcomeName(taken.status()))];
  }

  void OnFrame(Client& client, const TokenFrame& frame) {
    const Instant now = cluster_->clock().Now();
    const auto count = static_cast<int>(frame.tokens.size());
    if (count > 0) {
      if (client.tokens == 0) {
        client.first = now;
        if (now - client.arrived > options_.ttft_slo) Miss(client);
      } else {
        // Tokens of one frame come at once.
        report_.itl.Add(now - client.last);
        report_.itl.Add(absl::ZeroDuration(), count - 1);
      }
      client.last = now;
      client.tokens += count;
    }
    for (const FrameToken& token : frame.tokens) Digest(token.id);
    Digest(static_cast<uint64_t>(now.nanos()));
    if (frame.finish != FinishReason::kNone) client.usage = frame.usage;
  }

  void OnFinished(Client& client, const absl::Status& status) {
    ++ended_;
    if (status.ok()) {
      Account(client);
    } else {
      Miss(client);
      ++report_.failures[std::string(OutcomeName(status))];
    }
    if (options_.concurrency > 0) {
      cluster_->After(absl::ZeroDuration(), [this] { FillUp(); });
    }
  }

  void Account(Client& client) {
    const int prompt = client.usage.prompt_tokens;
    const int cached = client.usage.cached_tokens;
    ++report_.finished;
    report_.prompt_tokens += prompt;
    report_.cached_tokens += cached;
    report_.output_tokens += client.tokens;
    report_.blocks += prompt / kBlockTokens;
    report_.cached_blocks += cached / kBlockTokens;
    report_.runs += (prompt + kTraceBlockTokens - 1) / kTraceBlockTokens;
    report_.cached_runs += cached / kTraceBlockTokens;
    const absl::Duration ttft = client.first - client.arrived;
    report_.ttft.Add(ttft);
    report_.e2e.Add(client.last - client.arrived);
    absl::Duration mean;
    if (client.tokens > 1) {
      mean = (client.last - client.first) / (client.tokens - 1);
      report_.mean_itl.Add(mean);
    }
    if (ttft <= options_.ttft_slo && mean <= options_.itl_slo) {
      ++report_.good;
    } else {
      Miss(client);
    }
  }

  void Digest(uint64_t word) {
    report_.digest = SimModel::Fold(report_.digest, word);
  }

  const std::vector<TraceRequest>& trace_;
  const TraceRunOptions& options_;
  absl::Duration loop_time_;
  std::unique_ptr<TraceCluster> cluster_;
  std::deque<Client> clients_;  // in order of submission
  int64_t submitted_ = 0, ended_ = 0, missed_ = 0;
  TraceReport report_;
};

// Blocks that hold all that `requests` of the trace ever compute.
int64_t AllBlocks(const std::vector<TraceRequest>& trace, int64_t requests) {
  int64_t pass = 0;
  for (const TraceRequest& r : trace) {
    pass += BlocksFor(r.input_tokens + r.output_tokens);
  }
  const auto size = static_cast<int64_t>(trace.size());
  return pass * ((requests + size - 1) / size);
}

int64_t RequestsOf(const std::vector<TraceRequest>& trace,
                   const TraceRunOptions& options) {
  return options.requests > 0 ? options.requests
                              : static_cast<int64_t>(trace.size());
}

absl::StatusOr<TraceClusterOptions> ClusterOf(
    const std::vector<TraceRequest>& trace, const TraceRunOptions& options) {
  CHECK(!trace.empty());
  RETURN_IF_ERROR(Check(options));
  const int64_t requests = RequestsOf(trace, options);
  const int64_t blocks = options.pool_blocks > 0 ? options.pool_blocks
                                                 : AllBlocks(trace, requests);
  const int workers = options.prefill_workers + options.decode_workers;
  if (blocks > kMaxBlocks / workers) {
    return absl::InvalidArgumentError(
        absl::StrCat(workers, " workers of ", blocks,
                     " KV blocks are more than the ", kMaxBlocks,
                     " that a run may have in all: use fewer workers, requests "
                     "or blocks"));
  }
  int context = 0;
  for (const TraceRequest& r : trace) {
    context = std::max(context, r.input_tokens + r.output_tokens);
  }
  TraceClusterOptions cluster;
  cluster.preset = options.preset;
  cluster.prefill_workers = options.prefill_workers;
  cluster.decode_workers = options.decode_workers;
  cluster.pool_blocks = static_cast<int>(blocks);
  cluster.context_length = context;
  cluster.router.max_running = static_cast<int>(requests);
  cluster.router.max_queued = static_cast<int>(requests);
  cluster.router.max_queue_age = absl::InfiniteDuration();
  cluster.router.max_timeout = options.timeout;
  cluster.policy = options.policy;
  cluster.policy.kv_bytes_per_token = options.preset.kv_token_bytes();
  cluster.seed = options.seed;
  return cluster;
}

}  // namespace

double TraceReport::goodput() const {
  const double seconds = absl::ToDoubleSeconds(elapsed);
  return seconds > 0 ? static_cast<double>(good) / seconds : 0;
}

absl::StatusOr<TraceReport> RunTrace(const std::vector<TraceRequest>& trace,
                                     const TraceRunOptions& options) {
  ASSIGN_OR_RETURN(const TraceClusterOptions cluster,
                   ClusterOf(trace, options));
  return TraceRun(trace, options, RequestsOf(trace, options)).Run(cluster);
}

absl::StatusOr<bool> TraceMeets(double share,
                                const std::vector<TraceRequest>& trace,
                                const TraceRunOptions& options) {
  ASSIGN_OR_RETURN(const TraceClusterOptions cluster,
                   ClusterOf(trace, options));
  return TraceRun(trace, options, RequestsOf(trace, options))
      .Meets(share, cluster);
}

}  // namespace penstock
