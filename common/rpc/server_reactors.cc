#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/peer/error_reason.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/stream_reactor.h"

namespace penstock {
namespace {

std::string FromClient(const grpc::CallbackServerContext& context,
                       const char* key) {
  constexpr size_t kMostBytes = 256;
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return "";
  const grpc::string_ref value = found->second;
  return std::string(value.data(), std::min(value.size(), kMostBytes));
}

// What the two server specialisations share: `Reactor` is a
// grpc::ServerWriteReactor or grpc::ServerBidiReactor over byte buffers.
template <typename Reactor>
class ServerStream : public Reactor, public StreamReactor {
 public:
  ServerStream(grpc::CallbackServerContext* context,
               std::shared_ptr<Inbox> inbox, StreamLimits limits)
      : StreamReactor(std::move(inbox), limits), context_(context) {}

  // Hands the call to the method, on the loop.
  void Accept(const StreamMethod& method, std::string request, bool reads) {
    HoldSelf();
    auto self = std::static_pointer_cast<ServerStream>(shared_from_this());
    const bool posted =
        inbox()->TryPost([self, method, info = InfoOf(*context_),
                          request = std::move(request), reads]() mutable {
          self->Attach(method(info, std::move(request), self), reads);
        });
    if (!posted) FailFull("this server has too much to do");
  }

  void OnSendInitialMetadataDone(bool ok) override { WriteSideDone(ok); }
  void OnWriteDone(bool ok) override { WriteSideDone(ok); }
  void OnCancel() override { Cancelled(); }
  void OnDone() override { Ended(absl::OkStatus()); }

 protected:
  void StartHeadersOp(const Metadata& headers) override {
    for (const auto& [key, value] : headers) {
      context_->AddInitialMetadata(key, value);
    }
    this->StartSendInitialMetadata();
  }
  void StartWriteOp(const grpc::ByteBuffer* message) override {
    this->StartWrite(message);
  }
  void StartCloseOp(const absl::Status& status) override {
    AddTrailers(status, context_);
    this->Finish(ToGrpc(status));
  }
  void StartReadOp(grpc::ByteBuffer*) override {}
  Side side() const override { return Side::kServer; }

 private:
  grpc::CallbackServerContext* const context_;
};

using ServerWriter = ServerStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>;

class ServerBidi
    : public ServerStream<
          grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  using ServerStream::ServerStream;
  void OnReadDone(bool ok) override { ReadDone(ok); }

 protected:
  void StartReadOp(grpc::ByteBuffer* message) override { StartRead(message); }
};

// Deletes itself when the call is over.
class ServerUnary : public grpc::ServerUnaryReactor {
 public:
  ServerUnary(grpc::CallbackServerContext* context, grpc::ByteBuffer* response)
      : context_(context), response_(response) {}

  void Reply(absl::StatusOr<std::string> response) {
    if (response.ok()) *response_ = ToBuffer(*response);
    AddTrailers(response.status(), context_);
    Finish(ToGrpc(response.status()));
  }
  void OnDone() override { delete this; }

 private:
  grpc::CallbackServerContext* const context_;
  grpc::ByteBuffer* const response_;
};

}  // namespace

CallInfo InfoOf(const grpc::CallbackServerContext& context) {
  CallInfo info;
  info.request_id = FromClient(context, "x-request-id");
  info.traceparent = FromClient(context, "traceparent");
  const auto deadline = context.deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) {
    info.timeout = std::max(absl::FromChrono(deadline) - absl::Now(),
                            absl::Nanoseconds(1));
  }
  return info;
}

void AddTrailers(const absl::Status& status,
                 grpc::CallbackServerContext* context) {
  if (const auto millis = RetryPushbackMillis(status)) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms",
                                 absl::StrCat(*millis));
  }
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* AcceptServerStream(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    std::shared_ptr<Inbox> inbox, StreamLimits limits,
    const StreamMethod& method) {
  auto stream =
      std::make_shared<ServerWriter>(context, std::move(inbox), limits);
  stream->Accept(method, FromBuffer(*request), /*reads=*/false);
  return stream.get();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* AcceptBidiStream(
    grpc::CallbackServerContext* context, std::shared_ptr<Inbox> inbox,
    StreamLimits limits, const StreamMethod& method) {
  auto stream = std::make_shared<ServerBidi>(context, std::move(inbox), limits);
  stream->Accept(method, "", /*reads=*/true);
  return stream.get();
}

grpc::ServerUnaryReactor* AcceptUnary(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response,
                                      const std::shared_ptr<Inbox>& inbox,
                                      const UnaryMethod& method) {
  auto* call = new ServerUnary(context, response);
  UnaryReply reply([call](absl::StatusOr<std::string> response) {
    call->Reply(std::move(response));
  });
  // A task that is refused drops its reply, which answers UNAVAILABLE.
  static_cast<void>(inbox->TryPost([method, info = InfoOf(*context),
                                    request = FromBuffer(*request),
                                    reply = std::move(reply)]() mutable {
    method(info, std::move(request), std::move(reply));
  }));
  return call;
}

}  // namespace penstock
