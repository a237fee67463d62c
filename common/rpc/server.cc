#include "common/rpc/server.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/rpc/services.h"
#include "google/protobuf/stubs/logging.h"
#include "grpc/support/log.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"

namespace penstock {
namespace {

class GrpcServer : public RpcServer {
 public:
  GrpcServer(std::vector<std::unique_ptr<RpcService>> services,
             std::unique_ptr<grpc::Server> server, std::string address)
      : services_(std::move(services)),
        server_(std::move(server)),
        address_(std::move(address)) {
    SetServing(false);
  }
  ~GrpcServer() override { Shutdown(absl::ZeroDuration()); }

  const std::string& address() const override { return address_; }

  void SetServing(bool serving) override {
    grpc::HealthCheckServiceInterface* health =
        server_->GetHealthCheckService();
    health->SetServingStatus(serving);  // ""
    for (const auto& service : services_) {
      health->SetServingStatus(service->name(), serving);
    }
  }

  void Shutdown(absl::Duration grace) override {
    server_->Shutdown(std::chrono::system_clock::now() +
                      absl::ToChronoMilliseconds(grace));
    server_->Wait();
  }

 private:
  const std::vector<std::unique_ptr<RpcService>> services_;
  const std::unique_ptr<grpc::Server> server_;
  const std::string address_;
};

// gRPC's own lines would say again, at length, what our errors say.
void LogFromGrpc(gpr_log_func_args* args) {
  // The last words before it aborts the process.
  if (absl::StartsWith(args->message, "assertion failed")) {
    std::fprintf(stderr, "%s:%d: %s\n", args->file, args->line, args->message);
    return;
  }
  Log(LogLevel::kDebug, args->message,
      {{"from", "grpc"}, {"file", args->file}});
}

// What a hostile message makes protobuf say is in our refusal already.
void LogFromProtobuf(google::protobuf::LogLevel, const char*, int,
                     const std::string& message) {
  Log(LogLevel::kDebug, message, {{"from", "protobuf"}});
}

// gRPC's plugins are switched on for the whole process, before any server.
void EnablePlugins() {
  static const bool done = [] {
    gpr_set_log_function(&LogFromGrpc);
    google::protobuf::SetLogHandler(&LogFromProtobuf);
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const Options& options, std::vector<std::unique_ptr<RpcService>> services) {
  EnablePlugins();
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.address, grpc::InsecureServerCredentials(),
                           &port);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(64 << 20);
  // Two servers on one port would each get half of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients may ping as often as they like, also while idle.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // A client that vanished without a word is found.
  const int keepalive = static_cast<int>(std::clamp<int64_t>(
      absl::ToInt64Milliseconds(options.keepalive), 100, 3'600'000));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Reflection is the only synchronous service.
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  for (const auto& service : services) {
    builder.RegisterService(
        static_cast<GrpcService*>(service.get())->service());
  }
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.address,
                     "; is the address this machine's, and the port free?"));
  }
  const std::string host =
      options.address.substr(0, options.address.rfind(':'));
  return std::make_unique<GrpcServer>(std::move(services), std::move(server),
                                      absl::StrCat(host, ":", port));
}

}  // namespace penstock
