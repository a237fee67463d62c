#include "kvstore/server/store_server.h"

#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr absl::Duration kObserveEvery = absl::Milliseconds(200);
constexpr absl::Duration kShutdownGrace = absl::Seconds(1);

}  // namespace

// One worker's stream. Runs on the loop.
class StoreServer::Session : public StreamHandler {
 public:
  Session(StoreServer* server, std::shared_ptr<Stream> stream)
      : server_(server), stream_(std::move(stream)) {}

  void OnMessage(std::string bytes) override {
    if (!ended_.ok()) return;
    ended_ = Take(bytes);
    if (!ended_.ok()) stream_->Close(ended_);
  }

  void OnClosed(const absl::Status&) override {
    if (id_ == 0) return;
    // A later stream of the same worker may have taken its place.
    server_->host_->core()->Close(id_);
    Log(LogLevel::kInfo, "worker left", {{"worker", name_}});
  }

 private:
  absl::Status Take(const std::string& bytes) {
    ASSIGN_OR_RETURN(StoreRequest request, DecodeStoreRequest(bytes));
    if (id_ != 0) {
      StoreCore* core = server_->host_->core();
      if (!core->IsOpen(id_)) {
        return absl::AbortedError("replaced by a newer stream");
      }
      return core->OnRequest(id_, request);
    }
    const auto* hello = std::get_if<StoreHello>(&request);
    if (hello == nullptr) {
      return absl::FailedPreconditionError("a hello comes first");
    }
    ASSIGN_OR_RETURN(id_, server_->Welcome(*hello, stream_));
    name_ = hello->worker.name;
    return absl::OkStatus();
  }

  StoreServer* const server_;
  const std::shared_ptr<Stream> stream_;
  StoreCore::SessionId id_ = 0;
  std::string name_;
  absl::Status ended_;
};

StoreServer::StoreServer(Options options, Observer observer)
    : options_(std::move(options)),
      observer_(std::move(observer)),
      loop_(clock_, {.name = "kvstore"}) {}

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(
    Options options, Observer observer) {
  std::unique_ptr<StoreServer> server(
      new StoreServer(std::move(options), std::move(observer)));
  RETURN_IF_ERROR(server->StartServer());
  return server;
}

absl::Status StoreServer::StartServer() {
  host_ = std::make_unique<StoreHost>(
      options_.host, &clock_, [inbox = loop_.inbox()] { inbox->Wake(); });
  std::vector<std::unique_ptr<RpcService>> services;
  services.push_back(MakeKvStoreService(
      {[this](const CallInfo&, std::string, std::shared_ptr<Stream> stream) {
         return Attach(std::move(stream));
       },
       [this](const CallInfo&, std::string, UnaryReply reply) {
         reply(EncodeStoreReport(Look()));
       }},
      loop_.inbox()));
  // Before the server: its methods are tasks of the loop.
  loop_.Start([this] { Tick(); });
  RpcServer::Options rpc;
  rpc.address = options_.listen;
  rpc.max_message_bytes = 16 << 20;  // a lookup carries a whole chain
  rpc.keepalive = absl::Seconds(2);
  ASSIGN_OR_RETURN(server_, RpcServer::Start(rpc, std::move(services)));
  server_->SetServing(true);
  loop_.RunAndWait([this] { Observe(); });
  return absl::OkStatus();
}

StoreServer::~StoreServer() {
  if (server_ != nullptr) server_->Shutdown(kShutdownGrace);
  loop_.Stop();
}

std::unique_ptr<StreamHandler> StoreServer::Attach(
    std::shared_ptr<Stream> stream) {
  return std::make_unique<Session>(this, std::move(stream));
}

absl::StatusOr<StoreCore::SessionId> StoreServer::Welcome(
    const StoreHello& hello, const std::shared_ptr<Stream>& stream) {
  if (draining_) return absl::UnavailableError("the store stops");
  if (absl::Status prepared = host_->Prepare(hello); !prepared.ok()) {
    Log(LogLevel::kError, "the store cannot be opened",
        {{"why", std::string(prepared.message())}});
    return prepared;
  }
  ASSIGN_OR_RETURN(const StoreCore::SessionId id,
                   host_->core()->Open(hello, [stream](StoreReply reply) {
                     stream->Send(EncodeStoreReply(reply));
                   }));
  Log(LogLevel::kInfo, "worker came", {{"worker", hello.worker.name}});
  return id;
}

StoreReport StoreServer::Look() {
  StoreReport report;
  StoreCore* core = host_->core();
  if (core == nullptr) return report;
  const StoreCore::Stats stats = core->stats();
  const DiskTierStats disk = host_->disk_stats();
  report.workers = static_cast<int>(core->sessions());
  report.memory_pages = stats.pages;
  report.memory_page_limit = stats.blocks;
  report.disk_pages = disk.pages;
  report.disk_bytes = disk.bytes;
  report.puts = stats.puts;
  report.gets = stats.gets;
  report.get_hits = stats.hits;
  report.bad_pages = stats.bad_pages + disk.bad_pages + disk.bad_records;
  report.evicted = stats.evicted;
  report.identity = host_->identity();
  return report;
}

StoreReport StoreServer::Report() {
  StoreReport report;
  loop_.RunAndWait([&] { report = Look(); });
  return report;
}

void StoreServer::Observe() {
  if (observer_) observer_(Look());
  // Deadlines are looked at then, too.
  loop_.timers().Schedule(clock_.Now() + kObserveEvery, [this] { Observe(); });
}

void StoreServer::Tick() {
  host_->Tick();
  if (!draining_ || (host_->core() != nullptr && !host_->core()->idle())) {
    return;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  drained_ = true;
  drained_changed_.notify_all();
}

bool StoreServer::Drain(absl::Duration limit) {
  server_->SetServing(false);
  loop_.RunAndWait([this] {
    draining_ = true;
    if (host_->core() != nullptr) host_->core()->BeginDrain();
  });
  std::unique_lock<std::mutex> lock(mutex_);
  return drained_changed_.wait_for(lock, absl::ToChronoMilliseconds(limit),
                                   [this] { return drained_; });
}

}  // namespace penstock
