#include "common/rpc/stream_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "common/rpc/grpc_status.h"
#include "grpcpp/support/slice.h"

namespace penstock {

void StreamReactor::Send(std::string message) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (dead_ || close_.has_value()) return;
  if (queue_.size() >= limits_.max_queued_messages ||
      queued_bytes_ + message.size() > limits_.max_queued_bytes) {
    FailLocked(
        MakeError(ErrorReason::kQueueFull,
                  absl::StrCat("the reader is too slow: ", queue_.size(),
                               " messages of ", queued_bytes_, " bytes wait")));
    return;
  }
  queued_bytes_ += message.size();
  queue_.push_back(std::move(message));
  PumpLocked();
}

void StreamReactor::SendHeaders(Metadata headers) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (dead_ || close_.has_value() || headers_sent_) return;
  headers_ = std::move(headers);
  PumpLocked();
}

void StreamReactor::Close(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (dead_) return;
  if (side() == Side::kClient && !status.ok()) {
    // Also after our side has ended.
    CancelLocked();
    return;
  }
  if (close_.has_value()) return;
  close_ = status;
  PumpLocked();
}

void StreamReactor::PumpLocked() {
  if (write_in_flight_ || close_started_) return;
  if (dead_) {
    // A server has to finish even a call that the client has left.
    if (side() == Side::kServer) {
      close_started_ = write_in_flight_ = true;
      StartCloseOp(absl::CancelledError("the client has gone"));
    }
    return;
  }
  if (headers_.has_value() && !headers_sent_) {
    headers_sent_ = write_in_flight_ = true;
    StartHeadersOp(*headers_);
  } else if (!queue_.empty()) {
    headers_sent_ = write_in_flight_ = true;
    writing_ = ToBuffer(queue_.front());
    queued_bytes_ -= queue_.front().size();
    queue_.pop_front();
    StartWriteOp(&writing_);
  } else if (close_.has_value()) {
    close_started_ = write_in_flight_ = true;
    StartCloseOp(*close_);
  }
}

void StreamReactor::FailFull(absl::string_view what) {
  std::lock_guard<std::mutex> lock(mutex_);
  FailLocked(MakeError(ErrorReason::kQueueFull, what, "", absl::Seconds(1)));
}

void StreamReactor::FailLocked(const absl::Status& status) {
  PostClosedLocked(status);
  discard_ = true;
  queue_.clear();
  queued_bytes_ = 0;
  if (dead_) return;
  if (side() == Side::kClient) {
    CancelLocked();
  } else if (!close_started_) {
    close_ = status;
    PumpLocked();
  }
}

void StreamReactor::CancelLocked() {
  dead_ = true;
  queue_.clear();
  CancelOp();
}

void StreamReactor::PostClosedLocked(const absl::Status& status) {
  if (closed_posted_) return;
  closed_posted_ = true;
  // Never refused for want of room: there is one for each stream.
  inbox_->Post([self = shared_from_this(), status] {
    auto handler = std::move(self->handler_);
    if (handler != nullptr) handler->OnClosed(status);
  });
}

void StreamReactor::Attach(std::unique_ptr<StreamHandler> handler, bool reads) {
  handler_ = std::move(handler);
  std::lock_guard<std::mutex> lock(mutex_);
  if (reads) ReadMoreLocked();
}

void StreamReactor::ReadMoreLocked() {
  // A server that has finished its call starts nothing on it any more.
  const bool over = side() == Side::kServer && (close_started_ || dead_);
  if (read_in_flight_ || reads_ended_ || over) return;
  read_in_flight_ = true;
  reading_.Clear();
  StartReadOp(&reading_);
}

void StreamReactor::Deliver(std::string message) {
  if (handler_ != nullptr) handler_->OnMessage(std::move(message));
  std::lock_guard<std::mutex> lock(mutex_);
  ReadMoreLocked();
}

void StreamReactor::ReadDone(bool ok) {
  bool release = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    read_in_flight_ = false;
    if (!ok) {
      reads_ended_ = true;
      if (side() == Side::kClient) {
        // The call is over, but for its status.
        dead_ = true;
        queue_.clear();
      } else {
        // The client has finished its side: what is queued still goes out.
        PostClosedLocked(absl::OkStatus());
        if (!close_.has_value()) close_ = absl::OkStatus();
        PumpLocked();
      }
      release = TakeReleaseLocked();
    } else if (discard_) {
      ReadMoreLocked();
    } else if (!inbox_->TryPost([self = shared_from_this(),
                                 message = FromBuffer(reading_)]() mutable {
                 self->Deliver(std::move(message));
               })) {
      FailLocked(MakeError(ErrorReason::kQueueFull,
                           "this server has too much to do", "",
                           absl::Seconds(1)));
      ReadMoreLocked();
    }
  }
  if (release) Release();
}

void StreamReactor::WriteSideDone(bool ok) {
  bool release = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    write_in_flight_ = false;
    writing_.Clear();
    if (!ok && !close_started_) {
      dead_ = true;
      queue_.clear();
      if (side() == Side::kServer) {
        PostClosedLocked(absl::CancelledError("the client has gone"));
      }
    }
    PumpLocked();
    release = TakeReleaseLocked();
  }
  if (release) Release();
}

bool StreamReactor::TakeReleaseLocked() {
  if (released_ || !reads_ended_ || write_in_flight_) return false;
  released_ = true;
  return true;
}

void StreamReactor::Cancelled() {
  std::lock_guard<std::mutex> lock(mutex_);
  PostClosedLocked(absl::CancelledError("the client has gone"));
  dead_ = true;
  queue_.clear();
  PumpLocked();
}

void StreamReactor::Ended(const absl::Status& status) {
  // Goes after the lock does: it may be the last reference.
  std::shared_ptr<StreamReactor> self;
  std::lock_guard<std::mutex> lock(mutex_);
  dead_ = true;
  PostClosedLocked(status);
  self = std::move(self_);
}

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string FromBuffer(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

UnaryReply::~UnaryReply() {
  if (function_ != nullptr) {
    (*this)(MakeError(ErrorReason::kDraining,
                      "this server is stopping or has too much to do"));
  }
}

void UnaryReply::operator()(absl::StatusOr<std::string> response) {
  std::exchange(function_, nullptr)(std::move(response));
}

}  // namespace penstock
