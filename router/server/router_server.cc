#include "router/server/router_server.h"

#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/config/command_line.h"
#include "common/cost/cost_model.h"
#include "common/env/real/entropy.h"
#include "common/model/block_hash.h"
#include "common/model/kv_layout.h"
#include "common/rpc/server.h"
#include "common/runtime/load/model_loader.h"
#include "common/runtime/loop_thread.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/router_core.h"
#include "router/http/server/http_server.h"
#include "router/server/grpc_legs.h"
#include "router/server/http_calls.h"
#include "router/server/inference_calls.h"
#include "router/server/request_encoder.h"
#include "router/server/worker_registrar.h"

namespace penstock {
namespace {

// What a worker may send at once: all that it has cached, after it was away.
constexpr int kWorkerMessageBytes = 64 << 20;

TenantLimits LimitsOf(const TenantOptions& tenant) {
  return {tenant.weight, tenant.max_running, tenant.max_queued};
}

class RouterServerImpl : public RouterServer {
 public:
  RouterServerImpl(const Clock& clock, const std::string& cluster_key)
      : hasher_(HashSecret(cluster_key)),
        loop_(clock, {.name = "router", .inbox_capacity = 1 << 16}),
        encoder_loop_(clock, {.name = "encoder", .inbox_capacity = 1024}),
        legs_(loop_.inbox()) {}

  ~RouterServerImpl() override { Halt(absl::ZeroDuration()); }

  absl::Status Init(const RouterOptions& options, RouterProbe* probe,
                    HttpPorts http) {
    ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> model,
                     LoadModel({.path = options.model,
                                .weights = options.weights,
                                .convert = false}));
    RETURN_IF_ERROR(InitCore(options, *model, probe));
    InitHttpCalls(options, probe, std::move(http));
    loop_.Start([this] { FollowHealth(); });
    encoder_loop_.Start(nullptr);
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(
        MakeInferenceService(Methods(), loop_.inbox(), encoder_loop_.inbox()));
    services.push_back(MakeRegistryService(
        [this](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
          return registrar_->Accept(std::move(stream));
        },
        loop_.inbox()));
    ASSIGN_OR_RETURN(
        server_,
        RpcServer::Start({.address = options.listen.grpc,
                          // Clients' requests are checked one by one.
                          .max_message_bytes = std::max(
                              options.max_message_bytes, kWorkerMessageBytes),
                          .keepalive = options.worker_timeout},
                         std::move(services)));
    RETURN_IF_ERROR(StartHttp(options));
    // The loop has run without a server until now.
    loop_.RunAndWait([this] { health_ = server_.get(); });
    return absl::OkStatus();
  }

  const std::string& address() const override { return server_->address(); }
  std::string http_address() const override {
    return http_ == nullptr ? "" : http_->address();
  }

  bool Stop(absl::Duration patience,
            const std::function<bool()>& hurry) override {
    auto idle = std::make_shared<std::promise<void>>();
    std::future<void> ended = idle->get_future();
    if (http_ != nullptr) http_->Drain();
    loop_.RunAndWait(
        [this, idle] { core_->Drain([idle] { idle->set_value(); }); });
    constexpr absl::Duration kStep = absl::Milliseconds(50);
    bool clean = false;
    for (absl::Duration waited; waited < patience && !clean; waited += kStep) {
      clean = ended.wait_for(absl::ToChronoMilliseconds(kStep)) ==
              std::future_status::ready;
      if (hurry()) break;
    }
    Halt(absl::Milliseconds(clean ? 500 : 0));
    return clean;
  }

 private:
  absl::Status InitCore(const RouterOptions& options, const ModelFile& model,
                        RouterProbe* probe) {
    ASSIGN_OR_RETURN(encoder_,
                     RequestEncoder::Create(model, options.model_name));
    ASSIGN_OR_RETURN(CostModel cost, CostModel::Create({}));
    PolicyOptions policy;
    ASSIGN_OR_RETURN(policy.kind, ParsePolicy(options.policy));
    policy.local_prefill_tokens = options.local_prefill_tokens;
    policy.spill_prefill = options.spill_prefill;
    KvType kv_type = KvType::kF16;
    if (!options.kv_type.empty()) {
      ASSIGN_OR_RETURN(kv_type, ParseKvType(options.kv_type));
    }
    policy.kv_bytes_per_token = static_cast<int64_t>(
        KvLayout::For(model.spec(), kv_type).block_bytes() / kBlockTokens);
    policy_ = std::make_unique<PlacementPolicy>(policy, cost);
    RouterCore::Options core;
    core.workers.content = model.spec().content;
    core.workers.work = WorkEstimate(cost, policy.expected_tokens);
    core.workers.lost_after =
        std::max(core.workers.suspect_after + 1,
                 static_cast<int>(options.worker_timeout /
                                  core.workers.heartbeat_interval));
    core.workers.prefixes.max_bytes = options.prefix_memory_bytes;
    core.worker_patience = options.worker_patience;
    core.max_running = options.max_concurrent_requests;
    core.max_queued = options.max_queued_requests;
    core.max_timeout = options.max_timeout;
    core.max_queue_age = options.max_queue_age;
    for (const TenantOptions& tenant : options.tenants) {
      core.tenants[tenant.name] = LimitsOf(tenant);
    }
    core.other_tenants = LimitsOf(options.other_tenants);
    ASSIGN_OR_RETURN(
        core_,
        RouterCore::Create(core, {&loop_.clock(), &loop_.timers(), &random_,
                                  &hasher_, policy_.get(), &legs_, probe}));
    legs_.set_core(core_.get());
    registrar_ = std::make_unique<WorkerRegistrar>(
        core_.get(), &legs_, &loop_.clock(), &loop_.timers());
    calls_ = std::make_unique<InferenceCalls>(InferenceCalls::Ports{
        core_.get(), encoder_.get(), probe, &random_, loop_.inbox(),
        encoder_loop_.inbox(),
        options.max_concurrent_requests + options.max_queued_requests,
        static_cast<size_t>(options.max_message_bytes)});
    return absl::OkStatus();
  }

  void InitHttpCalls(const RouterOptions& options, RouterProbe* probe,
                     HttpPorts http) {
    http_tenants_ = std::make_unique<HttpTenants>(options);
    http_probe_ = http.probe == nullptr ? &no_http_probe_ : http.probe;
    http_calls_ = std::make_unique<HttpCalls>(HttpCalls::Ports{
        core_.get(), encoder_.get(), probe, http_probe_, &random_,
        loop_.inbox(), encoder_loop_.inbox(), std::move(http.metrics_page),
        options.max_concurrent_requests + options.max_queued_requests,
        http_tenants_.get()});
  }

  absl::Status StartHttp(const RouterOptions& options) {
    if (options.listen.http.empty()) return absl::OkStatus();
    const HttpOptions& http = options.http;
    HttpServer::Options server{options.listen.http, {}};
    server.limits.max_header_bytes = http.max_header_bytes;
    server.limits.max_body_bytes = options.max_message_bytes;
    server.limits.max_connections = http.max_connections;
    server.limits.max_queued_bytes = http.max_queued_bytes;
    server.limits.idle_timeout = http.idle_timeout;
    server.limits.header_timeout = http.header_timeout;
    server.limits.body_timeout = http.body_timeout;
    server.limits.write_timeout = http.write_timeout;
    auto handler = [this](HttpRequest request,
                          std::shared_ptr<HttpExchange> exchange) {
      return http_calls_->Handle(std::move(request), std::move(exchange));
    };
    ASSIGN_OR_RETURN(http_, HttpServer::Start(server, std::move(handler),
                                              loop_.inbox(), http_probe_));
    return absl::OkStatus();
  }

  InferenceMethods Methods() {
    InferenceMethods methods;
    methods.generate = [this](const CallInfo& info, std::string request,
                              std::shared_ptr<Stream> stream) {
      return calls_->Generate(info, std::move(request), std::move(stream));
    };
    methods.tokenize = [this](const CallInfo&, std::string request,
                              UnaryReply reply) {
      const absl::Status size = calls_->CheckSize(request);
      reply(size.ok() ? encoder_->Tokenize(request) : size);
    };
    methods.detokenize = [this](const CallInfo&, std::string request,
                                UnaryReply reply) {
      const absl::Status size = calls_->CheckSize(request);
      reply(size.ok() ? encoder_->Detokenize(request) : size);
    };
    methods.get_model_info = [this](const CallInfo&, std::string request,
                                    UnaryReply reply) {
      reply(calls_->GetModelInfo(request));
    };
    methods.abort = [this](const CallInfo&, std::string request,
                           UnaryReply reply) { reply(calls_->Abort(request)); };
    return methods;
  }

  // After each round of the loop: health follows what the core could do.
  void FollowHealth() {
    const bool serving = core_->CanServe() && !core_->draining();
    if (health_ == nullptr || serving == serving_) return;
    serving_ = serving;
    health_->SetServing(serving);
    Log(LogLevel::kInfo, serving ? "serving" : "not serving");
  }

  void Halt(absl::Duration grace) {
    if (http_ != nullptr) http_->Shutdown(grace);
    if (server_ != nullptr) server_->Shutdown(grace);
    // Streams have ended by now; nothing posts to a loop that is gone.
    encoder_loop_.Stop();
    loop_.Stop();
  }

  const BlockHasher hasher_;
  EntropyRandom random_;
  LoopThread loop_;
  LoopThread encoder_loop_;
  GrpcLegs legs_;
  std::unique_ptr<RequestEncoder> encoder_;
  std::unique_ptr<PlacementPolicy> policy_;
  std::unique_ptr<RouterCore> core_;
  std::unique_ptr<WorkerRegistrar> registrar_;
  std::unique_ptr<InferenceCalls> calls_;
  NullHttpProbe no_http_probe_;
  HttpProbe* http_probe_ = nullptr;
  std::unique_ptr<HttpTenants> http_tenants_;
  std::unique_ptr<HttpCalls> http_calls_;
  RpcServer* health_ = nullptr;  // the loop's own
  bool serving_ = false;         // the loop's own
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RouterServer>> RouterServer::Start(
    const RouterOptions& options, const Clock& clock, RouterProbe* probe,
    HttpPorts http) {
  ASSIGN_OR_RETURN(std::string key, ReadClusterKey(options.cluster_key_file));
  auto server = std::make_unique<RouterServerImpl>(clock, key);
  RETURN_IF_ERROR(server->Init(options, probe, std::move(http)));
  return server;
}

}  // namespace penstock
