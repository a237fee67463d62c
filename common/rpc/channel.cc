#include "common/rpc/channel.h"

#include <new>
#include <utility>

#include "common/rpc/grpc_status.h"
#include "common/rpc/stream_reactor.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"

namespace penstock {
namespace {

class ClientBidi
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
      public StreamReactor {
 public:
  using StreamReactor::StreamReactor;

  void Begin(grpc::GenericStub* stub, const std::string& method,
             std::unique_ptr<StreamHandler> handler) {
    HoldSelf();
    stub->PrepareBidiStreamingCall(&context_, method, {}, this);
    // Until our side has nothing more to start; see Release.
    AddHold();
    Attach(std::move(handler), /*reads=*/true);
    StartCall();
  }

  void OnReadDone(bool ok) override { ReadDone(ok); }
  void OnWriteDone(bool ok) override { WriteSideDone(ok); }
  void OnWritesDoneDone(bool ok) override { WriteSideDone(ok); }
  void OnDone(const grpc::Status& status) override { Ended(FromGrpc(status)); }

 protected:
  void StartHeadersOp(const Metadata&) override {}
  void StartWriteOp(const grpc::ByteBuffer* message) override {
    StartWrite(message);
  }
  void StartCloseOp(const absl::Status&) override { StartWritesDone(); }
  void StartReadOp(grpc::ByteBuffer* message) override { StartRead(message); }
  void CancelOp() override { context_.TryCancel(); }
  void Release() override { RemoveHold(); }
  Side side() const override { return Side::kClient; }

 private:
  grpc::ClientContext context_;
};

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Channels share no connection: one that is opened anew tries at once, also
  // where another waits before it tries again.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // Request states and cache snapshots can be larger than gRPC's default.
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(64 << 20);
  return arguments;
}

// gRPC's callback threads end with the last channel or server that uses them,
// and join themselves, which aborts, when a stream that ends on one of them is
// the last. So one user stays for the life of the process: a call that is
// never started, on a channel that never connects.
void KeepCallbackThreads() {
  struct Keeper : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    grpc::GenericStub stub{
        grpc::CreateChannel("unix:unused", grpc::InsecureChannelCredentials())};
    grpc::ClientContext context;
  };
  // Never destroyed, and in sight of leak checkers.
  alignas(Keeper) static unsigned char place[sizeof(Keeper)];
  static const bool kept = [] {
    auto* keeper = new (place) Keeper;
    keeper->stub.PrepareBidiStreamingCall(&keeper->context, kPairMethod, {},
                                          keeper);
    return true;
  }();
  static_cast<void>(kept);
}

class GrpcChannel : public RpcChannel {
 public:
  explicit GrpcChannel(const std::string& address)
      : stub_(grpc::CreateCustomChannel(
            address, grpc::InsecureChannelCredentials(), Arguments())) {}

  std::shared_ptr<Stream> Start(const std::string& method,
                                std::unique_ptr<StreamHandler> handler,
                                std::shared_ptr<Inbox> inbox,
                                StreamLimits limits) override {
    auto stream = std::make_shared<ClientBidi>(std::move(inbox), limits);
    stream->Begin(&stub_, method, std::move(handler));
    return stream;
  }

 private:
  grpc::GenericStub stub_;
};

}  // namespace

std::unique_ptr<RpcChannel> RpcChannel::Open(const std::string& address) {
  KeepCallbackThreads();
  return std::make_unique<GrpcChannel>(address);
}

}  // namespace penstock
