#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace penstock {

// gRPC as the rest of the code sees it: streams of bytes whose events arrive as
// tasks of a loop thread. No grpcpp type appears here.

using Metadata = std::vector<std::pair<std::string, std::string>>;

// What happens on one stream. Owned by the stream; every call, and the
// destructor, runs on the loop of the stream's inbox while that loop lives.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // The next message is read only after this returns, so a slow loop slows the
  // peer down instead of filling the inbox.
  virtual void OnMessage(std::string message) = 0;
  // The stream is over, for whatever reason; nothing follows. Server: OK when
  // it was closed with a status or the client finished its side, CANCELLED when
  // the client went away. Client: the server's status. RESOURCE_EXHAUSTED when
  // a queue was full.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// Our end of a stream. Any thread. After the stream is over every call is a
// no-op.
class Stream {
 public:
  virtual ~Stream() = default;

  // Queues a message; one write is outstanding at a time. When the queue is
  // full the stream fails.
  virtual void Send(std::string message) = 0;

  // Server: sends response headers now rather than with the first message.
  virtual void SendHeaders(Metadata headers) = 0;

  // Server: ends the call with `status` once the queue is written. Client: OK
  // ends our side once the queue is written; an error cancels the call at once.
  virtual void Close(const absl::Status& status) = 0;
};

struct StreamLimits {
  size_t max_queued_messages = 4096;
  size_t max_queued_bytes = 16 << 20;
};

// What is known of a call before its first message.
struct CallInfo {
  std::string request_id;   // x-request-id; may be empty
  std::string traceparent;  // may be empty
  absl::Duration timeout = absl::InfiniteDuration();  // left of its deadline
};

// A streaming method of a server, on the loop. `request` is the client's one
// message for server streams, empty for bidirectional ones. The stream belongs
// to the call, not to the method: keep the pointer to answer. Returns what
// hears of the stream; null after it was closed at once.
using StreamMethod = std::function<std::unique_ptr<StreamHandler>(
    const CallInfo& call, std::string request, std::shared_ptr<Stream> stream)>;

// Answers a unary call, once, from any thread. Dropped unanswered, the call
// ends with UNAVAILABLE.
class UnaryReply {
 public:
  using Function = absl::AnyInvocable<void(absl::StatusOr<std::string>)>;

  explicit UnaryReply(Function function) : function_(std::move(function)) {}
  UnaryReply(UnaryReply&& other) noexcept
      : function_(std::exchange(other.function_, nullptr)) {}
  UnaryReply& operator=(UnaryReply&&) = delete;
  ~UnaryReply();

  void operator()(absl::StatusOr<std::string> response);

 private:
  Function function_;
};

// A unary method of a server, on the loop.
using UnaryMethod = std::function<void(const CallInfo& call,
                                       std::string request, UnaryReply reply)>;

}  // namespace penstock
