#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/stream.h"

namespace penstock {

// What one end of a stream heard, for a test that waits for its end; read after
// WaitClosed.
struct Heard {
  std::vector<std::string> messages;
  std::promise<absl::Status> closed;

  // Once. DEADLINE_EXCEEDED: it did not close in time.
  absl::Status WaitClosed() {
    auto future = closed.get_future();
    if (future.wait_for(std::chrono::seconds(30)) !=
        std::future_status::ready) {
      return absl::DeadlineExceededError("the stream did not close");
    }
    return future.get();
  }
};

class StreamRecorder : public StreamHandler {
 public:
  explicit StreamRecorder(std::shared_ptr<Heard> heard)
      : heard_(std::move(heard)) {}
  void OnMessage(std::string message) override {
    heard_->messages.push_back(std::move(message));
  }
  void OnClosed(const absl::Status& status) override {
    heard_->closed.set_value(status);
  }

 private:
  const std::shared_ptr<Heard> heard_;
};

}  // namespace penstock
