#include "tools/simulator/sim_registrar.h"

#include <utility>

#include "common/peer/error_reason.h"
#include "tools/simulator/sim_worker_end.h"

namespace penstock {

std::unique_ptr<SimStreamHandler> SimRegistrar::Accept(
    const std::shared_ptr<SimStream>& stream) {
  return std::make_unique<Registration>(this, stream);
}

bool SimRegistrar::Registration::IsCurrent() const {
  const auto found = registrar_->current_.find(worker_);
  return found != registrar_->current_.end() && found->second == this;
}

void SimRegistrar::Registration::Check(const absl::Status& status) {
  if (status.ok()) return;
  if (auto stream = stream_.lock()) {
    stream->Close(SimStream::kServer, status);
  }
}

void SimRegistrar::Registration::Register(const WorkerInfo& info) {
  const absl::Status registered = registrar_->core_->OnRegister(info);
  Check(registered);
  if (!registered.ok()) return;
  worker_ = info.key;
  registrar_->current_[worker_] = this;
  if (auto stream = stream_.lock()) {
    stream->Send(SimStream::kServer, [](SimStreamHandler& handler) {
      static_cast<SimWorkerEnd&>(handler).Welcome();
    });
  }
}

void SimRegistrar::Registration::Load(const WorkerLoad& load) {
  Check(registrar_->core_->OnLoad(worker_, load));
}

void SimRegistrar::Registration::Events(const std::vector<CacheEvent>& events) {
  Answer(registrar_->core_->OnCacheEvents(worker_, events));
}

void SimRegistrar::Registration::Snapshot(const CacheSnapshot& snapshot) {
  Answer(registrar_->core_->OnCacheSnapshot(worker_, snapshot));
}

void SimRegistrar::Registration::Answer(const CacheSync& sync) {
  if (!sync.resend_from.has_value()) return;
  if (auto stream = stream_.lock()) {
    stream->Send(SimStream::kServer,
                 [from = *sync.resend_from](SimStreamHandler& handler) {
                   static_cast<SimWorkerEnd&>(handler).Replay(from);
                 });
  }
}

void SimRegistrar::Registration::OnClosed(const absl::Status& status) {
  if (!IsCurrent()) return;
  registrar_->current_.erase(worker_);
  registrar_->core_->OnWorkerLost(
      worker_,
      MakeError(ErrorReason::kWorkerLost,
                status.ok() ? "the worker has left" : status.message()));
}

}  // namespace penstock
