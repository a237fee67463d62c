#include "tools/simulator/sim_router_link.h"

#include <algorithm>
#include <utility>

#include "tools/simulator/sim_registrar.h"
#include "tools/simulator/sim_worker_end.h"

namespace penstock {
namespace {

constexpr absl::Duration kHeartbeat = absl::Milliseconds(500);
constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
constexpr uint64_t kEventsAtOnce = 1024;

using Registration = SimRegistrar::Registration;

// A message for the router's end.
template <typename Call>
SimStream::Message ForRouter(Call call) {
  return [call = std::move(call)](SimStreamHandler& handler) {
    call(static_cast<Registration&>(handler));
  };
}

}  // namespace

SimRouterLink::SimRouterLink(std::string router, WorkerInfo info, Ports ports)
    : router_(std::move(router)),
      info_(std::move(info)),
      ports_(std::move(ports)),
      pause_(kFirstPause) {
  Connect();
}

SimRouterLink::~SimRouterLink() { ports_.timers->Cancel(timer_); }

void SimRouterLink::Connect() {
  welcome_ = false;
  events_sent_ = 0;
  SimWorkerEnd::Events events;
  events.on_welcome = [this] { OnWelcome(); };
  events.on_replay = [this](uint64_t from) { OnReplay(from); };
  events.on_closed = [this] { OnClosed(); };
  stream_ = ports_.network->Open(
      info_.key.name, router_,
      std::make_unique<SimWorkerEnd>(std::move(events)),
      [find = ports_.find](const std::shared_ptr<SimStream>& stream) {
        return find()->Accept(stream);
      },
      SimStream::Kind::kControl);
  stream_->Send(SimStream::kClient, ForRouter([info = info_](Registration& r) {
                  r.Register(info);
                }));
}

void SimRouterLink::OnWelcome() {
  if (std::exchange(welcome_, true)) return;
  pause_ = kFirstPause;
  Report();
  ArmHeartbeat();
}

void SimRouterLink::ArmHeartbeat() {
  timer_ = ports_.timers->Schedule(ports_.clock->Now() + kHeartbeat, [this] {
    Report();
    ArmHeartbeat();
  });
}

void SimRouterLink::Report() {
  if (!welcome_ || stream_ == nullptr || muted_) return;
  SendEvents();
  stream_->Send(SimStream::kClient,
                ForRouter([load = ports_.core->Load()](Registration& r) {
                  r.Load(load);
                }));
}

void SimRouterLink::SendEvents() {
  CacheEventLog& log = ports_.core->cache_events();
  while (events_sent_ < log.last_sequence()) {
    auto events = log.Since(events_sent_, kEventsAtOnce);
    if (!events.has_value()) {
      SendSnapshot();
      return;
    }
    events_sent_ += events->size();
    stream_->Send(SimStream::kClient,
                  ForRouter([events = *std::move(events)](Registration& r) {
                    r.Events(events);
                  }));
  }
}

void SimRouterLink::SendSnapshot() {
  CacheEventLog& log = ports_.core->cache_events();
  events_sent_ = log.last_sequence();
  stream_->Send(SimStream::kClient,
                ForRouter([snapshot = log.Snapshot()](Registration& r) {
                  r.Snapshot(snapshot);
                }));
}

void SimRouterLink::OnReplay(uint64_t from) {
  if (stream_ == nullptr) return;
  if (from == 0) {
    SendSnapshot();
    return;
  }
  events_sent_ = std::min(from - 1, events_sent_);
  SendEvents();
}

void SimRouterLink::OnClosed() {
  stream_ = nullptr;
  ports_.timers->Cancel(timer_);
  const bool lost = std::exchange(welcome_, false);
  timer_ = ports_.timers->Schedule(ports_.clock->Now() + pause_,
                                   [this] { Connect(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
  if (lost) ports_.on_lost();
}

}  // namespace penstock
