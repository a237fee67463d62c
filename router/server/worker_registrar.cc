#include "router/server/worker_registrar.h"

#include <utility>

#include "common/base/log.h"
#include "common/peer/error_reason.h"
#include "common/rpc/overloaded.h"
#include "common/rpc/worker_wire.h"

namespace penstock {
namespace {

// Far below what makes a silent worker a lost one.
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(500);

}  // namespace

class WorkerRegistrar::Registration : public StreamHandler {
 public:
  Registration(WorkerRegistrar* registrar, std::shared_ptr<Stream> stream)
      : registrar_(registrar), stream_(std::move(stream)) {}

  void OnMessage(std::string bytes) override {
    if (closing_) return;
    absl::StatusOr<WorkerMessage> message = DecodeWorkerMessage(bytes);
    absl::Status status = message.status();
    if (status.ok()) {
      status = std::visit(
          Overloaded{
              [this](const WorkerInfo& info) { return Register(info); },
              [this](const WorkerLoad& load) { return Load(load); },
              [this](const CacheEvents& events) { return Events(events); },
              [this](const CacheSnapshot& all) { return Snapshot(all); }},
          *message);
    }
    if (!status.ok()) Close(status);
  }

  void OnClosed(const absl::Status& status) override {
    if (!IsCurrent()) return;
    registrar_->current_.erase(worker_);
    registrar_->legs_->RemoveWorker(worker_);
    const absl::Status why =
        MakeError(ErrorReason::kWorkerLost,
                  status.ok() ? "the worker has left" : status.message());
    registrar_->core_->OnWorkerLost(worker_, why);
    Log(LogLevel::kInfo, "worker left",
        {{"worker", worker_.name}, {"why", std::string(why.message())}});
  }

 private:
  bool IsCurrent() const {
    const auto found = registrar_->current_.find(worker_);
    return found != registrar_->current_.end() && found->second == this;
  }

  void Close(const absl::Status& status) {
    closing_ = true;
    stream_->Close(status);
    Log(LogLevel::kWarning, "a worker's stream was refused",
        {{"worker", worker_.name}, {"why", std::string(status.message())}});
  }

  absl::Status Register(const WorkerInfo& info) {
    if (worker_.incarnation) {
      return MakeError(ErrorReason::kInvalidField,
                       "info came twice on one stream", "info");
    }
    const absl::Status registered = registrar_->core_->OnRegister(info);
    if (!registered.ok()) {
      worker_.name = info.key.name;  // for the log
      return registered;
    }
    worker_ = info.key;
    registrar_->current_[worker_] = this;
    if (registrar_->timer_ == 0) registrar_->WatchStreams();
    registrar_->legs_->AddWorker(worker_, info.control_address);
    stream_->Send(EncodeRouterMessage(Welcome{}));
    Log(LogLevel::kInfo, "worker registered",
        {{"worker", worker_.name}, {"address", info.control_address}});
    return absl::OkStatus();
  }

  absl::Status Load(const WorkerLoad& load) {
    return registrar_->core_->OnLoad(worker_, load);
  }

  absl::Status Events(const CacheEvents& events) {
    Answer(registrar_->core_->OnCacheEvents(worker_, events),
           events.empty() ? 0 : events.back().sequence);
    return absl::OkStatus();
  }

  absl::Status Snapshot(const CacheSnapshot& snapshot) {
    Answer(registrar_->core_->OnCacheSnapshot(worker_, snapshot),
           snapshot.sequence);
    return absl::OkStatus();
  }

  void Answer(const CacheSync& sync, uint64_t applied) {
    if (sync.resend_from.has_value()) {
      stream_->Send(EncodeRouterMessage(CacheReplay{*sync.resend_from}));
    } else {
      stream_->Send(EncodeRouterMessage(CacheAck{applied}));
    }
  }

  WorkerRegistrar* const registrar_;
  const std::shared_ptr<Stream> stream_;
  WorkerKey worker_;  // no incarnation before it has registered
  bool closing_ = false;
};

WorkerRegistrar::~WorkerRegistrar() { timers_->Cancel(timer_); }

void WorkerRegistrar::WatchStreams() {
  for (const auto& [worker, stream] : current_) core_->OnAlive(worker);
  timer_ = timers_->Schedule(clock_->Now() + kBetweenLooks, [this] {
    timer_ = 0;
    if (!current_.empty()) WatchStreams();
  });
}

std::unique_ptr<StreamHandler> WorkerRegistrar::Accept(
    std::shared_ptr<Stream> stream) {
  return std::make_unique<Registration>(this, std::move(stream));
}

}  // namespace penstock
