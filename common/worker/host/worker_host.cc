#include "common/worker/host/worker_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/env/real/entropy.h"
#include "common/model/files/model_path.h"
#include "common/runtime/cores/shared_core_ledger.h"
#include "common/runtime/load/model_loader.h"
#include "common/transfer/set/transport_set.h"
#include "common/worker/host/calibration.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/oracle/oracle_backend.h"
#include "kernels/timer/timer_backend.h"
#include "kvstore/core/memory_tier.h"
#include "kvstore/core/tier_stack.h"
#include "kvstore/disk/disk_tier.h"

namespace penstock {
namespace {

struct BackendName {
  absl::string_view name;
  BackendChoice choice;
  CpuPath path;  // meaningless for the last two
};
constexpr BackendName kBackends[] = {
    {"auto", BackendChoice::kAuto, CpuPath::kAuto},
    {"avx512", BackendChoice::kAvx512, CpuPath::kAvx512},
    {"avx2", BackendChoice::kAvx2, CpuPath::kAvx2},
    {"scalar", BackendChoice::kScalar, CpuPath::kScalar},
    {"oracle", BackendChoice::kOracle, CpuPath::kAuto},
    {"timer", BackendChoice::kTimer, CpuPath::kAuto},
};

CpuPath PathOf(BackendChoice choice) {
  for (const BackendName& backend : kBackends) {
    if (backend.choice == choice) return backend.path;
  }
  return CpuPath::kAuto;
}

}  // namespace

absl::StatusOr<BackendChoice> ParseBackend(absl::string_view name) {
  std::vector<absl::string_view> known;
  for (const BackendName& backend : kBackends) {
    if (backend.name == name) return backend.choice;
    known.push_back(backend.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "backend is \"", name, "\"; use one of ", absl::StrJoin(known, ", ")));
}

WorkerHost::WorkerHost(WorkerHostOptions options)
    : options_(std::move(options)),
      secret_(options_.cluster_key),
      hasher_(secret_) {
  if (options_.model_name.empty()) {
    options_.model_name = ModelNameOf(options_.model_path);
  }
  if (options_.transports.empty()) {
    options_.transports = {TransportKind::kShm, TransportKind::kTcp};
  }
}

WorkerHost::~WorkerHost() = default;

absl::StatusOr<std::unique_ptr<WorkerHost>> WorkerHost::Create(
    WorkerHostOptions options, const Ports& ports) {
  std::unique_ptr<WorkerHost> host(new WorkerHost(std::move(options)));
  RETURN_IF_ERROR(host->Load(ports));
  return host;
}

// The other backends have nothing to choose, and must not seem to obey.
absl::Status WorkerHost::CheckPrecision() const {
  RETURN_IF_ERROR(ParsePrecision(options_.precision).status());
  const bool oracle = options_.backend == BackendChoice::kOracle;
  if (options_.precision == "default") return absl::OkStatus();
  if (!oracle && options_.backend != BackendChoice::kTimer) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "precision is ", options_.precision, "; backend ",
      oracle ? "oracle computes in f32 always" : "timer computes nothing",
      ": leave --precision out, or take --backend auto"));
}

absl::Status WorkerHost::Load(const Ports& ports) {
  RETURN_IF_ERROR(CheckPrecision());
  ASSIGN_OR_RETURN(model_, LoadModel({.path = options_.model_path,
                                      .weights = options_.weights,
                                      .threads = options_.threads}));
  ASSIGN_OR_RETURN(tokenizer_, CreateTokenizer(model_->vocabulary()));
  ASSIGN_OR_RETURN(const KvType kv_type, ChooseKvType());
  RETURN_IF_ERROR(MakeArena(kv_type));
  auto wake = [inbox = ports.loop->inbox()] { inbox->Wake(); };
  auto driver = std::make_shared<StepDriver>();
  RETURN_IF_ERROR(MakeBackend(kv_type, [driver, wake] {
    driver->Ring();
    wake();
  }));
  ASSIGN_OR_RETURN(
      options_.engine.measured,
      Calibrate(*backend_, *driver, ports.loop->clock(), total_blocks_));
  RETURN_IF_ERROR(MakeTransports(&ports.loop->clock(), wake));
  RETURN_IF_ERROR(MakeTiers(ports, wake));
  return MakeCore(ports);
}

absl::StatusOr<KvType> WorkerHost::ChooseKvType() const {
  const bool oracle = options_.backend == BackendChoice::kOracle;
  if (options_.kv_type.empty()) return oracle ? KvType::kF32 : KvType::kF16;
  ASSIGN_OR_RETURN(const KvType type, ParseKvType(options_.kv_type));
  if (oracle == (type == KvType::kF32)) return type;
  return absl::InvalidArgumentError(
      absl::StrCat("kv-type is ", options_.kv_type, "; ",
                   oracle ? "the oracle keeps f32 only"
                          : "f32 is for the oracle only, others take f16"));
}

absl::Status WorkerHost::MakeArena(KvType type) {
  uint64_t block = KvLayout::For(model_->spec(), type).block_bytes();
  // Block indices are 32 bits.
  uint64_t blocks =
      std::min<uint64_t>(options_.kv_memory_bytes / block, uint64_t{1} << 30);
  if (blocks == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kv-memory is ", options_.kv_memory_bytes,
        " bytes; one KV block of this model takes ", block,
        ", and a useful worker has hundreds: give --kv-memory 512MiB or so"));
  }
  total_blocks_ = static_cast<int>(blocks);
  ASSIGN_OR_RETURN(memory_, ArenaMemory::Create(blocks * block));
  return absl::OkStatus();
}

absl::Status WorkerHost::MakeBackend(KvType type, std::function<void()> wake) {
  if (options_.backend == BackendChoice::kOracle) {
    OracleBackend::Options oracle;
    oracle.model = model_.get();
    oracle.arena = memory_->arena();
    oracle.wake = std::move(wake);
    oracle.max_rows = options_.engine.max_rows;
    oracle.max_sequences = options_.engine.max_sequences;
    oracle.compute_threads.threads = options_.threads;
    oracle.compute_threads.spin = options_.spin;
    ASSIGN_OR_RETURN(backend_, OracleBackend::Create(std::move(oracle)));
    return absl::OkStatus();
  }
  if (options_.backend == BackendChoice::kTimer) {
    TimerBackend::Options timer;
    timer.spec = model_->spec();
    timer.kv_type = type;
    timer.arena = memory_->arena();
    timer.wake = std::move(wake);
    timer.max_rows = options_.engine.max_rows;
    timer.max_sequences = options_.engine.max_sequences;
    ASSIGN_OR_RETURN(backend_, TimerBackend::Create(std::move(timer)));
    return absl::OkStatus();
  }
  CpuBackendOptions cpu;
  cpu.model = model_.get();
  cpu.kv_type = type;
  cpu.arena = memory_->arena();
  cpu.threads = options_.threads;
  cpu.path = PathOf(options_.backend);
  ASSIGN_OR_RETURN(cpu.precision, ParsePrecision(options_.precision));
  cpu.weights_cache = options_.weights_cache;
  cpu.spin = options_.spin;
  cpu.max_rows = options_.engine.max_rows;
  cpu.max_sequences = options_.engine.max_sequences;
  cpu.wake = std::move(wake);
  ASSIGN_OR_RETURN(backend_, CpuBackend::Create(std::move(cpu)));
  return absl::OkStatus();
}

absl::Status WorkerHost::MakeTransports(const Clock* clock,
                                        std::function<void()> wake) {
  TransportOptions worker;
  worker.self = options_.self;
  worker.arena = memory_->arena();
  worker.layout = backend_->kv_layout();
  worker.hasher = hasher_;
  worker.wake = std::move(wake);
  worker.clock = clock;
  worker.entropy = DrawEntropy;
  ASSIGN_OR_RETURN(transports_,
                   penstock::MakeTransports(
                       {std::move(worker), options_.transports,
                        options_.data_listen, options_.data_advertised_host}));
  return absl::OkStatus();
}

absl::Status WorkerHost::MakeTiers(const Ports& ports,
                                   std::function<void()> wake) {
  const TierWorker worker{{backend_->kv_layout().id(), model_->spec().content,
                           backend_->caps().numerics},
                          ArenaPages(memory_->arena(), backend_->kv_layout()),
                          hasher_,
                          std::move(wake)};
  std::vector<std::unique_ptr<KvTier>> tiers;
  if (options_.kv_host_memory_bytes > 0) {
    ASSIGN_OR_RETURN(
        auto tier, MemoryTier::Create({worker, options_.kv_host_memory_bytes}));
    tiers.push_back(std::move(tier));
  }
  if (!options_.kv_disk.empty()) {
    DiskTier::Options disk{
        worker, absl::StrCat(options_.kv_disk, "/", options_.self.name),
        options_.kv_disk_bytes};
    disk.clock = &ports.loop->clock();
    ASSIGN_OR_RETURN(auto tier, DiskTier::Create(std::move(disk)));
    tiers.push_back(std::move(tier));
  }
  if (ports.make_last_tier) {
    ASSIGN_OR_RETURN(auto tier, ports.make_last_tier(worker));
    tiers.push_back(std::move(tier));
  }
  if (!tiers.empty()) tier_ = std::make_unique<TierStack>(std::move(tiers));
  return absl::OkStatus();
}

absl::Status WorkerHost::MakeCore(const Ports& ports) {
  WorkerCoreOptions core;
  core.self = options_.self;
  core.roles = options_.roles;
  core.model = options_.model_name;
  core.content = model_->spec().content;
  core.total_blocks = total_blocks_;
  core.context_length = model_->spec().context_length;
  core.vocab_size = model_->spec().vocab_size;
  core.engine = options_.engine;
  core.handoff = options_.handoff;
  WorkerCorePorts core_ports;
  core_ports.backend = backend_.get();
  core_ports.peers = ports.peers;
  for (auto& transport : transports_) {
    core_ports.transports.push_back(transport.get());
  }
  core_ports.tier = tier_.get();
  core_ports.hasher = &hasher_;
  core_ports.tokenizer = tokenizer_.get();
  core_ports.clock = &ports.loop->clock();
  core_ports.timers = &ports.loop->timers();
  if (!options_.core_ledger.empty()) {
    ASSIGN_OR_RETURN(cores_, SharedCoreLedger::Open(options_.core_ledger));
  }
  core_ports.cores = cores_.get();
  core_ports.engine_probe = ports.engine_probe;
  core_ports.handoff_probe = ports.handoff_probe;
  ASSIGN_OR_RETURN(core_, WorkerCore::Create(core, core_ports));
  return absl::OkStatus();
}

void WorkerHost::Tick() {
  while (core_->Tick()) {
  }
}

}  // namespace penstock
