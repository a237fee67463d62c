#include "router/server/testing/fake_worker.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/rpc/leg_wire.h"
#include "common/rpc/worker_wire.h"

namespace penstock {
namespace {

constexpr std::chrono::seconds kPatience(30);

class HangingLeg : public StreamHandler {
 public:
  HangingLeg(std::shared_ptr<Hanging> state, bool first)
      : state_(std::move(state)), first_(first) {}
  void OnMessage(std::string) override {}
  void OnClosed(const absl::Status& status) override {
    if (first_) state_->ended.set_value(status);
  }

 private:
  const std::shared_ptr<Hanging> state_;
  const bool first_;
};

}  // namespace

class FakeWorker::Registration : public StreamHandler {
 public:
  explicit Registration(FakeWorker* worker) : worker_(worker) {}
  void OnMessage(std::string) override {}
  void OnClosed(const absl::Status& status) override {
    worker_->ended_.set_value(status);
  }

 private:
  FakeWorker* const worker_;
};

FakeWorker::FakeWorker(const Clock& clock, std::string name, Decode decode)
    : loop_(clock, {.name = "worker"}), decode_(std::move(decode)) {
  loop_.Start(nullptr);
  auto method = [this](const CallInfo&, std::string request,
                       std::shared_ptr<Stream> stream) {
    auto leg = DecodeLegRequest(request);
    // A call that was cancelled at once arrives without its message.
    if (!leg.ok()) {
      stream->Close(leg.status());
      return std::unique_ptr<StreamHandler>();
    }
    return decode_(*std::move(leg), std::move(stream));
  };
  std::vector<std::unique_ptr<RpcService>> services;
  services.push_back(MakeWorkerService({method, method}, loop_.inbox()));
  auto server =
      RpcServer::Start({.address = "127.0.0.1:0"}, std::move(services));
  CHECK(server.ok()) << server.status().ToString();
  server_ = *std::move(server);
  info_.key = {std::move(name), Incarnation(77)};
  info_.roles = {false, true};
  info_.control_address = server_->address();
  info_.model = "tiny";
  info_.layout = LayoutId(5);
  info_.numerics = NumericsId(6);
  info_.context_length = kContext;
  info_.total_blocks = 64;
  info_.max_sequences = 8;
  info_.transports = {TransportKind::kTcp};
}

FakeWorker::~FakeWorker() {
  server_->Shutdown(absl::ZeroDuration());
  loop_.Stop();
}

void FakeWorker::Register(const std::string& router) {
  channel_ = RpcChannel::Open(router);
  stream_ = channel_->Start(
      kRegisterMethod, std::make_unique<Registration>(this), loop_.inbox());
  stream_->Send(EncodeWorkerMessage(info_));
  if (!cached_.chains.empty()) stream_->Send(EncodeWorkerMessage(cached_));
  WorkerLoad load;
  load.health = WorkerHealth::kReady;
  load.free_blocks = load.total_blocks = info_.total_blocks;
  stream_->Send(EncodeWorkerMessage(load));
}

absl::Status FakeWorker::WaitRegistrationEnded() {
  auto ended = ended_.get_future();
  if (ended.wait_for(kPatience) != std::future_status::ready) {
    return absl::DeadlineExceededError("still registered");
  }
  return ended.get();
}

TokenFrame FrameOf(const LegRequest& leg, int first, FinishReason finish) {
  TokenFrame frame;
  frame.attempt = leg.attempt;
  frame.first_index = first;
  frame.tokens.push_back({40 + first, absl::StrCat("t", first), {}});
  frame.finish = finish;
  frame.usage = {static_cast<int>(leg.request.prompt.size()), 0, first + 1};
  return frame;
}

std::unique_ptr<StreamHandler> AnswerTwo(LegRequest leg,
                                         std::shared_ptr<Stream> stream) {
  stream->Send(EncodeLegEvent(LegAccepted{}));
  stream->Send(EncodeLegEvent(FrameOf(leg, 0, FinishReason::kNone)));
  stream->Send(EncodeLegEvent(FrameOf(leg, 1, FinishReason::kLength)));
  stream->Close(absl::OkStatus());
  return nullptr;
}

FakeWorker::Decode Hang(std::shared_ptr<Hanging> state) {
  return [state](
             LegRequest leg,
             std::shared_ptr<Stream> stream) -> std::unique_ptr<StreamHandler> {
    stream->Send(EncodeLegEvent(LegAccepted{}));
    stream->Send(EncodeLegEvent(FrameOf(leg, 0, FinishReason::kNone)));
    const bool first = ++state->legs == 1;
    if (first) state->started.set_value(std::move(stream));
    return std::make_unique<HangingLeg>(state, first);
  };
}

}  // namespace penstock
