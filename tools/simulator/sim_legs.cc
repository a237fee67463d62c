#include "tools/simulator/sim_legs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "tools/simulator/sim_worker.h"

namespace penstock {

// Turns one leg's stream into the router core's events.
class SimLegs::RouterEnd : public SimStreamHandler {
 public:
  RouterEnd(SimLegs* legs, LegId leg) : legs_(legs), leg_(leg) {}

  void OnAccepted() { legs_->core_->OnLegAccepted(leg_); }
  void OnFrame(TokenFrame frame) {
    legs_->core_->OnLegFrame(leg_, std::move(frame));
  }
  void OnClosed(const absl::Status& status) override {
    legs_->streams_.erase(leg_);
    legs_->core_->OnLegFinished(leg_, status);
  }

 private:
  SimLegs* const legs_;
  const LegId leg_;
};

// The same leg at its worker: a router that goes away cancels it.
class SimLegs::WorkerEnd : public SimStreamHandler, public LegSink {
 public:
  WorkerEnd(SimWorker* worker, LegKind kind, TransferId transfer,
            const std::shared_ptr<SimStream>& stream)
      : worker_(worker), kind_(kind), transfer_(transfer), stream_(stream) {}

  void OnAccepted() override {
    Send([](SimStreamHandler& handler) {
      static_cast<RouterEnd&>(handler).OnAccepted();
    });
  }
  void OnFrame(TokenFrame frame) override {
    Send([frame = std::move(frame)](SimStreamHandler& handler) {
      static_cast<RouterEnd&>(handler).OnFrame(frame);
    });
  }
  void OnFinished(const absl::Status& status) override {
    finished_ = true;
    if (auto stream = stream_.lock()) {
      stream->Close(SimStream::kServer, status);
    }
  }
  void OnClosed(const absl::Status& status) override {
    if (!finished_) worker_->core().CancelLeg(kind_, transfer_);
  }

 private:
  void Send(SimStream::Message message) {
    if (auto stream = stream_.lock()) {
      stream->Send(SimStream::kServer, std::move(message));
    }
  }

  SimWorker* const worker_;
  const LegKind kind_;
  const TransferId transfer_;
  const std::weak_ptr<SimStream> stream_;  // its owner
  bool finished_ = false;
};

void SimLegs::Start(LegId leg, LegKind kind, const WorkerKey& worker,
                    LegRequest request) {
  auto accept = [find = find_, network = network_, leg, kind,
                 name = worker.name,
                 request](const std::shared_ptr<SimStream>& stream)
      -> std::unique_ptr<SimStreamHandler> {
    SimWorker* target = find(name);
    if (network->trace) {
      network->trace(absl::StrCat(
          "leg ", leg, kind == LegKind::kPrefill ? " prefill " : " decode ",
          name, " request ", request.request.id.value(), " attempt ",
          request.attempt.value()));
    }
    auto handler =
        std::make_unique<WorkerEnd>(target, kind, request.transfer(), stream);
    target->core().StartLeg(kind, request, handler.get());
    return handler;
  };
  std::shared_ptr<SimStream> stream =
      network_->Open(self_, worker.name, std::make_unique<RouterEnd>(this, leg),
                     accept, SimStream::Kind::kControl);
  stream->Send(SimStream::kClient, [](SimStreamHandler&) {});
  streams_.emplace(leg, std::move(stream));
}

void SimLegs::Cancel(LegId leg) {
  auto stream = streams_.find(leg);
  if (stream == streams_.end()) return;
  stream->second->Close(SimStream::kClient,
                        absl::CancelledError("the router gave up"));
}

}  // namespace penstock
