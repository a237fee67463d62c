#include "tests/benchmarks/relay/echo_server.h"

#include "absl/strings/str_cat.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace penstock {
namespace {

class Echo : public grpc::ServerGenericBidiReactor {
 public:
  Echo() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      StartWrite(&message_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnWriteDone(bool ok) override {
    if (ok) StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class Service : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Echo;
  }
};

class Server : public EchoServer {
 public:
  ~Server() override { server_->Shutdown(); }

  absl::Status Listen() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::UnavailableError("no port is free");
    address_ = absl::StrCat("127.0.0.1:", port);
    return absl::OkStatus();
  }
  const std::string& address() const override { return address_; }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<EchoServer>> EchoServer::Start() {
  auto server = std::make_unique<Server>();
  if (absl::Status status = server->Listen(); !status.ok()) return status;
  return server;
}

}  // namespace penstock
