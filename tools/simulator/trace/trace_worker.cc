#include "tools/simulator/trace/trace_worker.h"

#include <utility>

#include "common/base/status_macros.h"

namespace penstock {

// Gathers what the core says about one leg.
class TraceWorker::Sink : public LegSink {
 public:
  Sink(TraceWorker* worker, LegId leg) : worker_(worker), leg_(leg) {}

  void OnAccepted() override { worker_->Say({leg_, LegEvent::Accepted()}); }
  void OnFrame(TokenFrame frame) override {
    worker_->Say({leg_, std::move(frame)});
  }
  void OnFinished(const absl::Status& status) override {
    worker_->Say({leg_, status});
    auto ended = worker_->sinks_.extract(leg_);
    worker_->finished_.push_back(std::move(ended.mapped()));
  }

 private:
  TraceWorker* worker_;
  LegId leg_;
};

absl::StatusOr<std::unique_ptr<TraceWorker>> TraceWorker::Create(
    const Options& options, const Ports& ports,
    std::function<void()> to_router) {
  const WorkerKey& key = options.core.self;
  std::unique_ptr<TraceWorker> worker(
      new TraceWorker(key, std::move(to_router)));
  auto wake = [raw = worker.get()] { raw->Settle(); };
  const EngineOptions& engine = options.core.engine;
  worker->backend_ = std::make_unique<TimedBackend>(
      TimedBackend::Options{options.layout, engine.max_rows,
                            engine.max_sequences, options.vocabulary},
      ports.cost, ports.clock, ports.timers, wake);
  worker->peers_ = ports.network->MakePeers(key);
  worker->transport_ = ports.network->MakeTransport(key);
  WorkerCorePorts core;
  core.backend = worker->backend_.get();
  core.peers = worker->peers_.get();
  core.transports = {worker->transport_.get()};
  core.hasher = ports.hasher;
  core.tokenizer = ports.tokenizer;
  core.clock = ports.clock;
  core.timers = ports.timers;
  ASSIGN_OR_RETURN(worker->core_, WorkerCore::Create(options.core, core));
  ports.network->Attach(key, worker->core_->peer_listener(), wake);
  return worker;
}

TraceWorker::TraceWorker(const WorkerKey& key, std::function<void()> to_router)
    : key_(key), to_router_(std::move(to_router)) {}

TraceWorker::~TraceWorker() = default;

void TraceWorker::StartLeg(LegId leg, LegKind kind, LegRequest request) {
  auto sink = std::make_unique<Sink>(this, leg);
  LegSink* raw = sink.get();
  sinks_.emplace(leg, std::move(sink));
  core_->StartLeg(kind, std::move(request), raw);
  Settle();
}

void TraceWorker::CancelLeg(LegKind kind, TransferId transfer) {
  core_->CancelLeg(kind, transfer);
  Settle();
}

void TraceWorker::Settle() {
  while (core_->Tick()) {
  }
  finished_.clear();
}

void TraceWorker::Say(LegEvent event) {
  outbox_.push_back(std::move(event));
  if (outbox_.size() == 1) to_router_();
}

void TraceWorker::TakeOutbox(std::vector<LegEvent>& events) {
  events.clear();
  events.swap(outbox_);
}

}  // namespace penstock
