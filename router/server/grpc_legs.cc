#include "router/server/grpc_legs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/peer/error_reason.h"
#include "common/rpc/leg_wire.h"

namespace penstock {

// Turns one leg's stream into the core's events.
class GrpcLegs::LegStream : public StreamHandler {
 public:
  LegStream(GrpcLegs* legs, LegId leg) : legs_(legs), leg_(leg) {}

  void OnMessage(std::string message) override {
    if (!broken_.ok()) return;
    absl::StatusOr<LegEvent> event = DecodeLegEvent(message);
    if (!event.ok()) {
      // What a worker of ours cannot have said: the leg is of no use.
      broken_ = MakeError(
          ErrorReason::kInternal,
          absl::StrCat("a worker's message: ", event.status().message()));
      legs_->Cancel(leg_);
    } else if (auto* frame = std::get_if<TokenFrame>(&*event)) {
      legs_->core_->OnLegFrame(leg_, std::move(*frame));
    } else {
      legs_->core_->OnLegAccepted(leg_);
    }
  }

  void OnClosed(const absl::Status& status) override {
    legs_->streams_.erase(leg_);
    legs_->core_->OnLegFinished(leg_, broken_.ok() ? status : broken_);
  }

 private:
  GrpcLegs* const legs_;
  const LegId leg_;
  absl::Status broken_;
};

void GrpcLegs::AddWorker(const WorkerKey& worker, const std::string& address) {
  links_[worker] = LegLink::Open(address, loop_);
}

void GrpcLegs::RemoveWorker(const WorkerKey& worker) { links_.erase(worker); }

void GrpcLegs::Start(LegId leg, LegKind kind, const WorkerKey& worker,
                     LegRequest request) {
  const auto link = links_.find(worker);
  if (link == links_.end()) {
    // Never from inside Start.
    loop_->Post([this, leg, name = worker.name] {
      core_->OnLegFinished(leg,
                           MakeError(ErrorReason::kWorkerLost,
                                     absl::StrCat(name, " is not registered")));
    });
    return;
  }
  auto stream = link->second->Start(kind, EncodeLegRequest(request),
                                    std::make_unique<LegStream>(this, leg));
  const bool added = streams_.emplace(leg, std::move(stream)).second;
  CHECK(added) << "leg " << leg << " was started before";
}

void GrpcLegs::Cancel(LegId leg) {
  const auto stream = streams_.find(leg);
  if (stream == streams_.end()) return;
  stream->second->Close(absl::CancelledError("the router gave up"));
}

}  // namespace penstock
