#include "common/worker/server/worker_server.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/command_line.h"
#include "common/env/real/entropy.h"
#include "common/peer/error_reason.h"
#include "common/runtime/load/cache_folder.h"
#include "common/worker/server/leg_stream.h"
#include "kvstore/client/remote_tier.h"

namespace penstock {
namespace {

constexpr absl::Duration kObserveEvery = absl::Milliseconds(200);
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

std::string RoleName(WorkerRoles roles) {
  if (roles.prefill && roles.decode) return "both";
  return roles.prefill ? "prefill" : "decode";
}

// The same interface, but any port: a second transport listens there, too.
std::string AnyPortOf(const std::string& address) {
  return absl::StrCat(address.substr(0, address.rfind(':')), ":0");
}

// Rows of a prefill chunk: small enough that decode steps in between do not
// wait long.
int PrefillChunk(int max_step_tokens) { return std::min(max_step_tokens, 256); }

}  // namespace

WorkerServer::WorkerServer(const WorkerOptions& options, WorkerRoles roles)
    : options_(options),
      roles_(roles),
      role_(RoleName(roles)),
      self_{options.name.empty()
                ? absl::StrFormat("%s-%08x", role_,
                                  static_cast<uint32_t>(DrawEntropy()))
                : options.name,
            DrawIncarnation()},
      loop_(clock_, {.name = "engine"}),
      peers_(self_, loop_.inbox()) {}

absl::StatusOr<std::unique_ptr<WorkerServer>> WorkerServer::Start(
    const WorkerOptions& options, WorkerRoles roles) {
  std::unique_ptr<WorkerServer> server(new WorkerServer(options, roles));
  ASSIGN_OR_RETURN(server->metrics_,
                   MetricsServer::Create(options.listen.metrics, server->role_,
                                         PENSTOCK_VERSION));
  RETURN_IF_ERROR(server->StartServer());
  RETURN_IF_ERROR(server->LoadHost());
  return server;
}

WorkerServer::~WorkerServer() {
  if (server_ != nullptr) server_->Shutdown(kShutdownGrace);
  loop_.Stop();
  routers_.clear();
}

StreamMethod WorkerServer::LegMethod(LegKind kind) {
  return [this, kind](
             const CallInfo&, std::string request,
             std::shared_ptr<Stream> stream) -> std::unique_ptr<StreamHandler> {
    if (host_ == nullptr) {
      stream->Close(MakeError(ErrorReason::kNoWorkers,
                              "the worker loads its model", "",
                              absl::Seconds(1)));
      return nullptr;
    }
    return ServeLeg(kind, host_->core(), request, std::move(stream));
  };
}

absl::Status WorkerServer::StartServer() {
  std::vector<std::unique_ptr<RpcService>> services;
  services.push_back(MakeWorkerService(
      {LegMethod(LegKind::kPrefill), LegMethod(LegKind::kDecode)},
      loop_.inbox()));
  services.push_back(MakeHandoffService(
      [this](const CallInfo&, std::string,
             std::shared_ptr<Stream> stream) -> std::unique_ptr<StreamHandler> {
        if (host_ == nullptr) {
          stream->Close(absl::UnavailableError("the worker loads its model"));
          return nullptr;
        }
        return peers_.Accept(std::move(stream));
      },
      loop_.inbox()));
  // Before the server: its methods are tasks of the loop.
  loop_.Start([this] { Tick(); });
  RpcServer::Options rpc;
  rpc.address = options_.listen.grpc;
  rpc.max_message_bytes = 64 << 20;  // a commit carries a whole prompt
  // Routers and peers ping us as often: both ends of a link that has fallen
  // silent give it up at about the same time.
  rpc.keepalive = absl::Seconds(2);
  ASSIGN_OR_RETURN(server_, RpcServer::Start(rpc, std::move(services)));
  return absl::OkStatus();
}

WorkerHostOptions WorkerServer::HostOptions(std::string cluster_key) const {
  WorkerHostOptions host;
  host.self = self_;
  host.roles = roles_;
  host.model_path = options_.model;
  host.model_name = options_.model_name;
  host.weights = options_.weights;
  host.weights_cache = WeightsCacheFolder(options_.weights_cache);
  host.kv_type = options_.kv_type;
  host.precision = options_.precision;
  host.cluster_key = std::move(cluster_key);
  int cores = std::max(1u, std::thread::hardware_concurrency());
  host.threads = options_.threads > 0 ? options_.threads : cores;
  host.spin = host.threads * options_.host_workers <= cores;
  // Where there are cores for all threads, nobody has to wait for any.
  if (!host.spin) host.core_ledger = options_.core_ledger;
  host.kv_memory_bytes = options_.kv_memory_bytes;
  host.kv_host_memory_bytes = options_.kv_host_memory_bytes;
  host.kv_disk = options_.kv_disk;
  host.kv_disk_bytes = options_.kv_disk_bytes;
  host.data_listen = options_.data_listen;
  host.data_advertised_host = options_.data_advertise;
  host.engine.max_rows = options_.max_step_tokens;
  host.engine.max_sequences = options_.max_sequences;
  host.engine.prefill_chunk = PrefillChunk(options_.max_step_tokens);
  host.engine.itl_target = options_.itl_target;
  host.engine.max_waiting = options_.max_queued_requests;
  return host;
}

absl::StatusOr<std::unique_ptr<KvTier>> WorkerServer::MakeStoreTier(
    const TierWorker& worker, std::vector<TransportKind> transports) {
  RemoteTier::Options options{.worker = worker};
  options.self = self_;
  options.store = options_.kvstore;
  // The store is a process of its own.
  std::erase(transports, TransportKind::kInproc);
  if (transports.empty()) {
    transports = {TransportKind::kShm, TransportKind::kTcp};
  }
  options.transports = std::move(transports);
  options.data_listen = AnyPortOf(options_.data_listen);
  options.data_advertised_host = options_.data_advertise;
  return RemoteTier::Create(std::move(options),
                            {&clock_, &loop_.timers(), loop_.inbox()});
}

absl::Status WorkerServer::LoadHost() {
  ASSIGN_OR_RETURN(std::string key, ReadClusterKey(options_.cluster_key_file));
  WorkerHostOptions host_options = HostOptions(std::move(key));
  ASSIGN_OR_RETURN(host_options.backend, ParseBackend(options_.backend));
  if (options_.transport != "auto") {
    ASSIGN_OR_RETURN(TransportKind kind, ParseTransport(options_.transport));
    host_options.transports = {kind};
  }
  // The probes exist before the host, whose size they only label.
  std::string model_label = options_.model_name;
  Instant begin = clock_.Now();
  worker_metrics_ = std::make_unique<WorkerMetrics>(
      WorkerMetrics::Options{model_label, role_}, metrics_->registry());
  WorkerHost::Ports ports{&loop_, &peers_, worker_metrics_.get(),
                          worker_metrics_.get()};
  if (!options_.kvstore.empty()) {
    ports.make_last_tier = [this, &host_options](const TierWorker& worker) {
      return MakeStoreTier(worker, host_options.transports);
    };
  }
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerHost> host,
                   WorkerHost::Create(host_options, ports));
  worker_metrics_->Loaded(host->total_blocks());
  Log(LogLevel::kInfo, "model loaded",
      {{"model", host->model_name()},
       {"backend", host->backend().caps().name},
       {"kv_blocks", absl::StrCat(host->total_blocks())},
       {"seconds", absl::StrCat(absl::ToDoubleSeconds(clock_.Now() - begin))}});
  loop_.RunAndWait([&] {
    peers_.set_listener(host->core().peer_listener());
    host_ = std::move(host);
    WorkerInfo info = host_->core().Info();
    info.control_address =
        options_.advertise.empty() ? server_->address() : options_.advertise;
    for (const std::string& router : options_.routers) {
      routers_.push_back(std::make_unique<RouterLink>(
          router, info,
          RouterLink::Ports{&host_->core(), &clock_, &loop_.timers(),
                            loop_.inbox(), [this] { ReportToRouters(); }}));
    }
    Observe();
  });
  server_->SetServing(true);
  return absl::OkStatus();
}

// A router's clients come to the others when it dies: these know by then where
// its requests have left their KV.
void WorkerServer::ReportToRouters() {
  for (auto& router : routers_) router->Report();
}

void WorkerServer::Observe() {
  worker_metrics_->Observe(host_->core().Load(), host_->core().pool().counts());
  loop_.timers().Schedule(clock_.Now() + kObserveEvery, [this] { Observe(); });
}

void WorkerServer::Tick() {
  if (host_ == nullptr) return;
  host_->Tick();
  const WorkerCore& core = host_->core();
  // What is kept is waited for: it is handed on, or its lease ends.
  if (!draining_ || !core.idle() || core.keeps()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  drained_ = true;
  drained_changed_.notify_all();
}

bool WorkerServer::Drain(absl::Duration limit) {
  server_->SetServing(false);
  loop_.RunAndWait([this] {
    draining_ = true;
    host_->core().BeginDrain();
    ReportToRouters();
  });
  std::unique_lock<std::mutex> lock(mutex_);
  return drained_changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                                   [this] { return drained_; });
}

}  // namespace penstock
