#include "common/worker/server/leg_stream.h"

#include <utility>

#include "common/rpc/leg_wire.h"

namespace penstock {
namespace {

class LegStream : public StreamHandler, public LegSink {
 public:
  LegStream(LegKind kind, WorkerCore* core, TransferId transfer,
            std::shared_ptr<Stream> stream)
      : kind_(kind),
        core_(core),
        transfer_(transfer),
        stream_(std::move(stream)) {}

  void OnAccepted() override { stream_->Send(EncodeLegEvent(LegAccepted{})); }
  void OnFrame(TokenFrame frame) override {
    stream_->Send(EncodeLegEvent(std::move(frame)));
  }
  void OnFinished(const absl::Status& status) override {
    finished_ = true;
    stream_->Close(status);
  }

  void OnMessage(std::string message) override {}
  void OnClosed(const absl::Status& status) override {
    if (!finished_) core_->CancelLeg(kind_, transfer_);
  }

 private:
  const LegKind kind_;
  WorkerCore* const core_;
  const TransferId transfer_;
  const std::shared_ptr<Stream> stream_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<StreamHandler> ServeLeg(LegKind kind, WorkerCore& core,
                                        const std::string& request,
                                        std::shared_ptr<Stream> stream) {
  auto leg = DecodeLegRequest(request);
  if (!leg.ok()) {
    stream->Close(leg.status());
    return nullptr;
  }
  auto handler = std::make_unique<LegStream>(kind, &core, leg->transfer(),
                                             std::move(stream));
  core.StartLeg(kind, *std::move(leg), handler.get());
  return handler;
}

}  // namespace penstock
