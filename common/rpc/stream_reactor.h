#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/rpc/stream.h"
#include "common/runtime/inbox.h"
#include "grpcpp/impl/codegen/server_callback.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"

namespace penstock {

// The one state machine over gRPC's streaming reactors; see stream.h for what
// it promises. Specialisations say how each operation is started. Operations
// are started with the lock held: in the callback API a completion never runs
// inside the call that starts its operation.
//
// Lifetime: a reactor holds itself until gRPC's OnDone.
class StreamReactor : public Stream,
                      public std::enable_shared_from_this<StreamReactor> {
 public:
  StreamReactor(std::shared_ptr<Inbox> inbox, StreamLimits limits)
      : inbox_(std::move(inbox)), limits_(limits) {}

  void Send(std::string message) override;
  void SendHeaders(Metadata headers) override;
  void Close(const absl::Status& status) override;

 protected:
  // How to start each operation; called with the lock held. At most one of
  // the first three is outstanding, and at most one read.
  virtual void StartHeadersOp(const Metadata& headers) = 0;
  virtual void StartWriteOp(const grpc::ByteBuffer* message) = 0;
  // Server: the final status. Client: the end of our side.
  virtual void StartCloseOp(const absl::Status& status) = 0;
  virtual void StartReadOp(grpc::ByteBuffer* message) = 0;
  // Client: cancels the call. Server: nothing; the call is over already.
  virtual void CancelOp() {}
  // Client: nothing more will be started; releases the hold on the call.
  // Called without the lock, once.
  virtual void Release() {}

  // What specialisations report. ------------------------------------------

  // Handler and the first read. Loop thread.
  void Attach(std::unique_ptr<StreamHandler> handler, bool reads);
  // An operation of the first three has ended.
  void WriteSideDone(bool ok);
  void ReadDone(bool ok);
  // The other side gave up.
  void Cancelled();
  // Nothing of the call is outstanding any more.
  void Ended(const absl::Status& status);
  void HoldSelf() { self_ = shared_from_this(); }

  const std::shared_ptr<Inbox>& inbox() const { return inbox_; }
  // Fails the stream for want of room.
  void FailFull(absl::string_view what);

  enum class Side { kServer, kClient };
  virtual Side side() const = 0;

 private:
  void PumpLocked();
  void FailLocked(const absl::Status& status);
  void CancelLocked();
  void PostClosedLocked(const absl::Status& status);
  bool TakeReleaseLocked();
  void Deliver(std::string message);
  void ReadMoreLocked();

  const std::shared_ptr<Inbox> inbox_;
  const StreamLimits limits_;
  std::unique_ptr<StreamHandler> handler_;  // loop thread only

  std::mutex mutex_;  // guards all below
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  grpc::ByteBuffer writing_;
  grpc::ByteBuffer reading_;
  std::optional<Metadata> headers_;
  std::optional<absl::Status> close_;
  bool headers_sent_ = false;
  bool write_in_flight_ = false;
  bool read_in_flight_ = false;
  bool reads_ended_ = false;
  bool close_started_ = false;
  bool dead_ = false;     // nothing more can be written
  bool discard_ = false;  // messages are not wanted any more
  bool closed_posted_ = false;
  bool released_ = false;
  std::shared_ptr<StreamReactor> self_;
};

grpc::ByteBuffer ToBuffer(const std::string& bytes);
// Empty when the buffer cannot be read.
std::string FromBuffer(const grpc::ByteBuffer& buffer);

CallInfo InfoOf(const grpc::CallbackServerContext& context);
// Adds what a failed call tells its client beside the status.
void AddTrailers(const absl::Status& status,
                 grpc::CallbackServerContext* context);

// Server methods, for the generated services. The reactors own themselves.
grpc::ServerWriteReactor<grpc::ByteBuffer>* AcceptServerStream(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    std::shared_ptr<Inbox> inbox, StreamLimits limits,
    const StreamMethod& method);
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* AcceptBidiStream(
    grpc::CallbackServerContext* context, std::shared_ptr<Inbox> inbox,
    StreamLimits limits, const StreamMethod& method);
grpc::ServerUnaryReactor* AcceptUnary(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response,
                                      const std::shared_ptr<Inbox>& inbox,
                                      const UnaryMethod& method);

}  // namespace penstock
