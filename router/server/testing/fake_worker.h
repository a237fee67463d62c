#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/env/clock.h"
#include "common/model/token_frame.h"
#include "common/peer/leg.h"
#include "common/peer/worker_report.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/stream.h"
#include "common/runtime/loop_thread.h"

namespace penstock {

// A worker as a router meets it over gRPC: its legs do what the test says, and
// a stream registers it. Its loop is a thread of its own.
class FakeWorker {
 public:
  using Decode = std::function<std::unique_ptr<StreamHandler>(
      LegRequest, std::shared_ptr<Stream>)>;
  static constexpr int kContext = 512;  // of the tiny model

  FakeWorker(const Clock& clock, std::string name, Decode decode);
  ~FakeWorker();

  WorkerInfo& info() { return info_; }
  // Sent before it says that it is ready.
  CacheSnapshot& cached() { return cached_; }

  // Registers and says that it is ready; once.
  void Register(const std::string& router);
  void Leave() { stream_->Close(absl::CancelledError("leaving")); }
  absl::Status WaitRegistrationEnded();

 private:
  class Registration;

  LoopThread loop_;
  const Decode decode_;
  WorkerInfo info_;
  CacheSnapshot cached_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcChannel> channel_;
  std::shared_ptr<Stream> stream_;
  std::promise<absl::Status> ended_;
};

TokenFrame FrameOf(const LegRequest& leg, int first, FinishReason finish);

// A leg: two tokens and a good end.
std::unique_ptr<StreamHandler> AnswerTwo(LegRequest leg,
                                         std::shared_ptr<Stream> stream);

// One token, then silence; remembers how the first such leg ended. A test may
// cause more of them: a request that waited starts when the one before goes.
struct Hanging {
  std::promise<std::shared_ptr<Stream>> started;
  std::promise<absl::Status> ended;
  int legs = 0;  // the worker loop's
};
FakeWorker::Decode Hang(std::shared_ptr<Hanging> state);

}  // namespace penstock
