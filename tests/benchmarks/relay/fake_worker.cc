#include "tests/benchmarks/relay/fake_worker.h"

#include <atomic>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/env/real/monotonic_clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/leg_wire.h"
#include "common/rpc/server.h"
#include "common/rpc/worker_wire.h"
#include "common/runtime/loop_thread.h"

namespace penstock {
namespace {

constexpr int kMaxSequences = 1 << 16;
constexpr int kBlocks = 1 << 24;
constexpr absl::Duration kHeartbeat = absl::Milliseconds(500);

// One leg that gets tokens.
struct Leg {
  AttemptId attempt;
  std::shared_ptr<Stream> stream;
  int next = 0;
  int end = 0;
  Usage usage;  // when the last token ends the answer
  bool ends = false;
};

class Worker : public FakeWorker {
 public:
  explicit Worker(const Options& options)
      : options_(options), loop_(clock_, {"fake-worker", 1 << 16}) {}
  ~Worker() override {
    loop_.RunAndWait([this] {
      if (registration_ != nullptr) {
        registration_->Close(absl::CancelledError("the worker stops"));
      }
      for (auto& [id, leg] : legs_) {
        leg.stream->Close(absl::CancelledError("the worker stops"));
      }
    });
    server_->Shutdown(absl::ZeroDuration());
    loop_.Stop();
  }

  absl::Status Listen();
  bool registered() const override { return registered_; }

 private:
  class LegHandler;
  class RouterHandler;

  std::unique_ptr<StreamHandler> Serve(LegKind kind, const std::string& request,
                                       std::shared_ptr<Stream> stream);
  void Register();
  void OnRouterMessage(const std::string& bytes);
  void Heartbeat();
  void Tick();
  // False: it was the last one.
  bool Give(Leg& leg);

  const Options options_;
  MonotonicClock clock_;
  LoopThread loop_;
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<RpcChannel> channel_;
  std::shared_ptr<Stream> registration_;
  std::atomic<bool> registered_ = false;
  std::map<uint64_t, Leg> legs_;
  uint64_t next_leg_ = 1;
  Instant next_tick_;
};

class Worker::LegHandler : public StreamHandler {
 public:
  LegHandler(Worker* worker, uint64_t leg) : worker_(worker), leg_(leg) {}
  void OnMessage(std::string) override {}
  void OnClosed(const absl::Status&) override { worker_->legs_.erase(leg_); }

 private:
  Worker* const worker_;
  const uint64_t leg_;
};

class Worker::RouterHandler : public StreamHandler {
 public:
  explicit RouterHandler(Worker* worker) : worker_(worker) {}
  void OnMessage(std::string bytes) override {
    worker_->OnRouterMessage(bytes);
  }
  void OnClosed(const absl::Status& status) override {
    Log(LogLevel::kError, "the router ended the registration",
        {{"why", std::string(status.message())}});
    worker_->registered_ = false;
  }

 private:
  Worker* const worker_;
};

absl::Status Worker::Listen() {
  auto serve = [this](LegKind kind) {
    return [this, kind](const CallInfo&, std::string request,
                        std::shared_ptr<Stream> stream) {
      return Serve(kind, request, std::move(stream));
    };
  };
  std::vector<std::unique_ptr<RpcService>> services;
  services.push_back(MakeWorkerService(
      {serve(LegKind::kPrefill), serve(LegKind::kDecode)}, loop_.inbox()));
  ASSIGN_OR_RETURN(server_,
                   RpcServer::Start({"127.0.0.1:0"}, std::move(services)));
  server_->SetServing(true);
  next_tick_ = clock_.Now();
  loop_.Start({});
  loop_.RunAndWait([this] {
    Register();
    Tick();
  });
  return absl::OkStatus();
}

void Worker::Register() {
  WorkerInfo info;
  info.key = {options_.name, Incarnation(1)};
  info.roles = {true, true};
  info.control_address = server_->address();
  info.model = "fake";
  info.content = options_.content;
  info.layout = LayoutId(1);
  info.numerics = NumericsId(1);
  info.context_length = kMaxSequences;
  info.total_blocks = kBlocks;
  info.max_sequences = kMaxSequences;
  info.transports = {TransportKind::kTcp};
  channel_ = RpcChannel::Open(options_.router);
  registration_ = channel_->Start(
      kRegisterMethod, std::make_unique<RouterHandler>(this), loop_.inbox());
  registration_->Send(EncodeWorkerMessage(info));
}

void Worker::OnRouterMessage(const std::string& bytes) {
  const auto message = DecodeRouterMessage(bytes);
  if (!message.ok() || !std::holds_alternative<Welcome>(*message)) return;
  Heartbeat();
  registered_ = true;
}

void Worker::Heartbeat() {
  WorkerLoad load;
  load.health = WorkerHealth::kReady;
  load.active_requests = static_cast<int>(legs_.size());
  load.free_blocks = load.total_blocks = kBlocks;
  load.step_time = options_.tick;
  registration_->Send(EncodeWorkerMessage(load));
  loop_.timers().Schedule(clock_.Now() + kHeartbeat, [this] { Heartbeat(); });
}

std::unique_ptr<StreamHandler> Worker::Serve(LegKind kind,
                                             const std::string& request,
                                             std::shared_ptr<Stream> stream) {
  const absl::StatusOr<LegRequest> leg_request = DecodeLegRequest(request);
  if (!leg_request.ok()) {
    stream->Close(leg_request.status());
    return nullptr;
  }
  Leg leg;
  leg.attempt = leg_request->attempt;
  leg.stream = std::move(stream);
  leg.stream->Send(EncodeLegEvent(LegAccepted{}));
  const int asked = leg_request->request.stop.max_tokens;
  const bool pair = !leg_request->partner.worker.empty();
  leg.next = kind == LegKind::kDecode && pair ? 1 : 0;
  leg.end = kind == LegKind::kPrefill ? 1 : asked;
  leg.ends = leg.end == asked;
  leg.usage.prompt_tokens =
      static_cast<int>(leg_request->request.prompt.size());
  leg.usage.completion_tokens = asked;
  const uint64_t id = next_leg_++;
  auto handler = std::make_unique<LegHandler>(this, id);
  if (leg.next < leg.end) {
    // A prompt takes no time here.
    if (leg.next > 0 || Give(leg)) legs_.emplace(id, std::move(leg));
  } else {
    leg.stream->Close(absl::OkStatus());
  }
  return handler;
}

bool Worker::Give(Leg& leg) {
  TokenFrame frame;
  frame.attempt = leg.attempt;
  frame.first_index = leg.next++;
  FrameToken token;
  token.id = 1;
  token.text = options_.text;
  frame.tokens.push_back(std::move(token));
  const bool last = leg.next == leg.end;
  if (last && leg.ends) {
    frame.finish = FinishReason::kLength;
    frame.usage = leg.usage;
    frame.transfer.transport = "none";
  }
  leg.stream->Send(EncodeLegEvent(std::move(frame)));
  if (last) leg.stream->Close(absl::OkStatus());
  return !last;
}

void Worker::Tick() {
  // A tick that came late is given late, not doubled: as an engine's step.
  next_tick_ = std::max(next_tick_ + options_.tick, clock_.Now());
  for (auto it = legs_.begin(); it != legs_.end();) {
    it = Give(it->second) ? std::next(it) : legs_.erase(it);
  }
  loop_.timers().Schedule(next_tick_, [this] { Tick(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<FakeWorker>> FakeWorker::Start(
    const Options& options) {
  auto worker = std::make_unique<Worker>(options);
  RETURN_IF_ERROR(worker->Listen());
  return worker;
}

}  // namespace penstock
