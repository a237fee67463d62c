#include "tools/simulator/sim_worker.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace penstock {
namespace {

constexpr ContentId kContent(42);

// What the backend's steps cost.
CostCoefficients CostOf(const SimBackend::Options& backend) {
  CostCoefficients cost;
  if (backend.modelled) return cost;
  cost.prefill_fixed = backend.step_cost;
  cost.prefill_token = backend.row_cost;
  cost.prefill_pair = absl::ZeroDuration();
  return cost;
}

}  // namespace

SimWorker::SimWorker(SimWorkerOptions options, SimNetwork* network,
                     const Clock* clock, Timers* timers,
                     const BlockHasher* hasher, const Tokenizer* tokenizer,
                     SimHost* host, SimTierPages* below)
    : options_(std::move(options)),
      network_(network),
      host_(host),
      // Poisoned, so that a page that nobody wrote is no page of zeros.
      memory_(options_.blocks * SimModel::Layout().block_bytes(), 0xFF) {
  const WorkerKey& self = options_.key;
  Arena arena{absl::MakeSpan(memory_), -1};
  backend_ =
      std::make_unique<SimBackend>(options_.backend, arena, network->clock(),
                                   network->timers(), [this] { Wake(); });
  peers_ = network->MakePeers(self);
  WorkerCoreOptions core;
  core.self = self;
  core.roles = options_.roles;
  core.model = "simulated";
  core.content = kContent;
  core.total_blocks = options_.blocks;
  core.context_length = options_.context_length;
  core.vocab_size = SimModel::kVocabulary;
  core.engine = options_.engine;
  core.engine.cost = CostOf(options_.backend);
  core.handoff = options_.handoff;
  core.cache_event_ring = options_.cache_events;
  WorkerCorePorts ports;
  ports.backend = backend_.get();
  ports.peers = peers_.get();
  std::vector<SimTransportOptions> kinds = options_.transports;
  if (kinds.empty()) kinds.emplace_back();
  for (const SimTransportOptions& transport : kinds) {
    transports_.push_back(
        network->MakeTransport(self, transport, arena, clock, timers));
    ports.transports.push_back(transports_.back().get());
  }
  ports.hasher = hasher;
  ports.tokenizer = tokenizer;
  if (options_.tier.pages > 0) MakeTier(below, arena, *hasher);
  ports.tier = tier_.get();
  ports.clock = clock;
  ports.timers = timers;
  ports.handoff_probe = options_.handoff_probe;
  auto created = WorkerCore::Create(core, ports);
  CHECK(created.ok()) << created.status().ToString();
  core_ = *std::move(created);
  SimNetwork::Host attached;
  attached.key = self;
  attached.arena = arena;
  attached.listener = core_->peer_listener();
  attached.wake = [this] { Settle(); };
  attached.host = host;
  attached.on_write = [this](BlockIndex block) { backend_->Touched(block); };
  attached.machine = options_.machine;
  attached.process = options_.process;
  network->Attach(std::move(attached));
}

SimWorker::~SimWorker() { network_->Kill(options_.key); }

void SimWorker::MakeTier(SimTierPages* below, Arena arena,
                         const BlockHasher& hasher) {
  CHECK(below != nullptr) << "a tier needs a place for its pages";
  TierWorker worker{
      {backend_->kv_layout().id(), kContent, backend_->caps().numerics},
      ArenaPages(arena, backend_->kv_layout()),
      hasher,
      [this] { Wake(); }};
  SimTier::Ports ports;
  ports.held = below;
  ports.clock = network_->clock();
  ports.timers = network_->timers();
  ports.on_write = [this](BlockIndex block) { backend_->Touched(block); };
  tier_ = std::make_unique<SimTier>(options_.tier, std::move(worker),
                                    options_.key.incarnation.value(),
                                    std::move(ports));
}

void SimWorker::Wake() {
  if (host_ != nullptr) {
    host_->Handle([] {});
  } else {
    Settle();
  }
}

void SimWorker::Settle() {
  while (core_->Tick()) {
  }
  if (options_.recount) core_->pool().CheckConservation();
}

void SimWorker::TakeBlocks(int64_t id, int count) {
  BlockPool& pool = core_->pool();
  auto taken = pool.TryAllocate(std::min(count, pool.free()));
  CHECK(taken.has_value()) << "free blocks are there to be had";
  taken_[id] = *std::move(taken);
}

int SimWorker::taken_blocks() const {
  size_t taken = 0;
  for (const auto& [id, holds] : taken_) taken += holds.size();
  return static_cast<int>(taken);
}

absl::Status SimWorker::CheckBlocks() const {
  BlockCensus census(&core_->pool());
  core_->CountBlocks(census);
  for (const auto& [id, holds] : taken_) census.Add(holds);
  return census.Compare();
}

void SimWorker::GiveBlocksBack(int64_t id) { taken_.erase(id); }

}  // namespace penstock
