#include "tools/simulator/sim_worker.h"

#include "common/base/check.h"

namespace penstock {

SimWorker::SimWorker(SimWorkerOptions options, SimNetwork* network,
                     ManualClock* clock, Timers* timers,
                     const BlockHasher* hasher, const Tokenizer* tokenizer)
    : key_(options.key),
      // Poisoned, so that a page that nobody wrote is no page of zeros.
      memory_(options.blocks * SimModel::Layout().block_bytes(), 0xFF) {
  Arena arena{absl::MakeSpan(memory_), -1};
  backend_ = std::make_unique<SimBackend>(options.backend, arena, clock, timers,
                                          [this] { Settle(); });
  peers_ = network->MakePeers(key_.name);
  WorkerCoreOptions core;
  core.self = key_;
  core.roles = options.roles;
  core.model = "simulated";
  core.content = ContentId(42);
  core.total_blocks = options.blocks;
  core.context_length = options.context_length;
  core.vocab_size = SimModel::kVocabulary;
  core.engine = options.engine;
  core.handoff = options.handoff;
  WorkerCorePorts ports;
  ports.backend = backend_.get();
  ports.peers = peers_.get();
  if (options.transports.empty()) options.transports = {TransportKind::kTcp};
  for (TransportKind kind : options.transports) {
    transports_.push_back(network->MakeTransport(key_, kind));
    ports.transports.push_back(transports_.back().get());
  }
  ports.hasher = hasher;
  ports.tokenizer = tokenizer;
  ports.clock = clock;
  ports.timers = timers;
  auto created = WorkerCore::Create(core, ports);
  CHECK(created.ok()) << created.status().ToString();
  core_ = *std::move(created);
  network->Attach({key_, arena, core_->peer_listener(), [this] { Settle(); }});
}

SimWorker::~SimWorker() = default;

void SimWorker::Settle() {
  if (frozen_) return;
  while (core_->Tick()) {
  }
  core_->pool().CheckConservation();
}

}  // namespace penstock
