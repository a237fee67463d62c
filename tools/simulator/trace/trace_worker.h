#pragma once

#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "common/worker/core/worker_core.h"
#include "router/core/router_ports.h"
#include "tools/simulator/trace/timed_backend.h"
#include "tools/simulator/trace/timed_network.h"

namespace penstock {

// What a worker tells the router about one leg.
struct LegEvent {
  struct Accepted {};
  LegId leg = 0;
  std::variant<Accepted, TokenFrame, absl::Status> what;
};

// One worker of a TraceCluster: the production core on ports that only take
// time. Single-threaded.
class TraceWorker {
 public:
  struct Options {
    WorkerCoreOptions core;
    int vocabulary = 0;
    KvLayout layout;
  };
  struct Ports {
    const CostModel* cost = nullptr;
    TimedNetwork* network = nullptr;
    const BlockHasher* hasher = nullptr;
    const Tokenizer* tokenizer = nullptr;
    const Clock* clock = nullptr;
    Timers* timers = nullptr;
  };
  // `to_router` runs when the first event of an outbox is in it.
  static absl::StatusOr<std::unique_ptr<TraceWorker>> Create(
      const Options& options, const Ports& ports,
      std::function<void()> to_router);
  ~TraceWorker();

  void StartLeg(LegId leg, LegKind kind, LegRequest request);
  void CancelLeg(LegKind kind, TransferId transfer);
  // Runs the core until it has nothing more to do at this instant.
  void Settle();

  // Into `events`, whose memory the next ones will have.
  void TakeOutbox(std::vector<LegEvent>& events);

  WorkerCore& core() { return *core_; }
  const WorkerKey& key() const { return key_; }
  int64_t steps() const { return backend_->steps(); }

  uint64_t cache_events_sent = 0;  // the sequence of the last

 private:
  class Sink;

  TraceWorker(const WorkerKey& key, std::function<void()> to_router);
  void Say(LegEvent event);

  WorkerKey key_;
  std::function<void()> to_router_;
  std::unique_ptr<TimedBackend> backend_;
  std::unique_ptr<PeerNetwork> peers_;
  std::unique_ptr<KvTransport> transport_;
  std::vector<LegEvent> outbox_;
  std::map<LegId, std::unique_ptr<Sink>> sinks_;
  std::vector<std::unique_ptr<Sink>> finished_;  // until the core has returned
  std::unique_ptr<WorkerCore> core_;
};

}  // namespace penstock
