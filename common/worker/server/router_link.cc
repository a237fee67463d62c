#include "common/worker/server/router_link.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/base/log.h"
#include "common/rpc/worker_wire.h"

namespace penstock {
namespace {

constexpr absl::Duration kHeartbeat = absl::Milliseconds(500);
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
// Short, since a router that has just started can serve nothing before workers
// come, and asking costs little.
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// Events of one message.
constexpr size_t kEventsAtOnce = 1024;

}  // namespace

class RouterLink::Handler : public StreamHandler {
 public:
  explicit Handler(RouterLink* link) : link_(link) {}
  void Orphan() { link_ = nullptr; }

  void OnMessage(std::string bytes) override {
    if (link_ == nullptr) return;
    auto message = DecodeRouterMessage(bytes);
    if (!message.ok()) {
      link_->stream_->Close(message.status());
    } else if (std::holds_alternative<Welcome>(*message)) {
      link_->OnWelcome();
    } else if (auto* replay = std::get_if<CacheReplay>(&*message)) {
      link_->OnReplay(replay->from_sequence);
    }
  }
  void OnClosed(const absl::Status& status) override {
    if (link_ != nullptr) link_->OnClosed(status);
  }

 private:
  RouterLink* link_;
};

RouterLink::RouterLink(std::string router, WorkerInfo info, Ports ports)
    : router_(std::move(router)),
      info_(std::move(info)),
      ports_(std::move(ports)),
      pause_(kFirstPause) {
  Connect();
}

RouterLink::~RouterLink() {
  ports_.timers->Cancel(timer_);
  if (handler_ != nullptr) handler_->Orphan();
  if (stream_ != nullptr) {
    stream_->Close(absl::CancelledError("the worker stops"));
  }
}

void RouterLink::Connect() {
  auto handler = std::make_unique<Handler>(this);
  handler_ = handler.get();
  welcome_ = false;
  events_sent_ = 0;
  // Anew, so that our pauses count and not the connection's own.
  channel_ = RpcChannel::Open(router_);
  stream_ = channel_->Start(kRegisterMethod, std::move(handler), ports_.inbox);
  stream_->Send(EncodeWorkerMessage(info_));
}

void RouterLink::OnWelcome() {
  if (std::exchange(welcome_, true)) return;
  Log(LogLevel::kInfo, "registered", {{"router", router_}});
  Report();
  ArmHeartbeat();
}

void RouterLink::ArmHeartbeat() {
  timer_ = ports_.timers->Schedule(ports_.clock->Now() + kHeartbeat, [this] {
    // The router has taken the first report, or the stream had ended by now.
    pause_ = kFirstPause;
    Report();
    ArmHeartbeat();
  });
}

void RouterLink::Report() {
  if (!welcome_ || stream_ == nullptr) return;
  SendEvents();
  stream_->Send(EncodeWorkerMessage(ports_.core->Load()));
}

void RouterLink::SendEvents() {
  CacheEventLog& log = ports_.core->cache_events();
  while (events_sent_ < log.last_sequence()) {
    const auto events = log.Since(events_sent_, kEventsAtOnce);
    if (!events.has_value()) {
      events_sent_ = log.last_sequence();
      stream_->Send(EncodeWorkerMessage(log.Snapshot()));
      return;
    }
    events_sent_ += events->size();
    stream_->Send(EncodeWorkerMessage(CacheEvents(*events)));
  }
}

void RouterLink::OnReplay(uint64_t from) {
  if (from == 0) {
    CacheEventLog& log = ports_.core->cache_events();
    events_sent_ = log.last_sequence();
    stream_->Send(EncodeWorkerMessage(log.Snapshot()));
    return;
  }
  events_sent_ = std::min(from - 1, events_sent_);
  SendEvents();
}

void RouterLink::OnClosed(const absl::Status& status) {
  stream_ = nullptr;
  handler_ = nullptr;
  ports_.timers->Cancel(timer_);
  // The first failure is worth a line; so is a loss after a welcome.
  if (welcome_ || pause_ == kFirstPause) {
    Log(LogLevel::kWarning, "router is away",
        {{"router", router_}, {"why", std::string(status.message())}});
  }
  const bool lost = std::exchange(welcome_, false);
  timer_ = ports_.timers->Schedule(ports_.clock->Now() + pause_,
                                   [this] { Connect(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
  if (lost) ports_.on_lost();
}

}  // namespace penstock
