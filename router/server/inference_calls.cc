#include "router/server/inference_calls.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"
#include "router/server/request_seed.h"

namespace penstock {

// One Generate call: its stream's handler and its request's sink.
class InferenceCalls::Call : public StreamHandler, public ClientSink {
 public:
  Call(InferenceCalls* calls, uint64_t id, std::shared_ptr<Stream> stream)
      : calls_(calls), id_(id), stream_(std::move(stream)) {}

  // The request is known; takes it to the core.
  void Submit(ClientRequest client) {
    GenerateRequest& request = client.request;
    Random& random = *calls_->ports_.random;
    if (request.client_request_id.empty()) {
      request.client_request_id = absl::StrFormat("%016x", random.Next());
    }
    if (!client.has_seed) {
      request.sampling.seed = SeedOf(request.client_request_id);
    }
    head_.request_id = request.client_request_id;
    traceparent_ = std::move(client.traceparent);
    const absl::StatusOr<RequestId> submitted =
        calls_->ports_.core->Submit(std::move(request), this);
    if (!submitted.ok()) {
      Finish(submitted.status());
      return;
    }
    request_ = *submitted;
  }

  // Ends the call with an error, whatever it does now.
  void Abort(const absl::Status& status) {
    if (request_) {
      calls_->ports_.core->Cancel(request_);
    } else {
      Finish(status);
    }
  }

  void Finish(const absl::Status& status) {
    request_ = RequestId();
    if (finished_) return;
    finished_ = true;
    Log(status.ok() ? LogLevel::kDebug : LogLevel::kInfo, "request ended",
        {{"request", head_.request_id},
         {"outcome", std::string(OutcomeName(status))},
         {"why", std::string(status.message())},
         {"prefill", head_.prefill},
         {"decode", head_.decode},
         {"traceparent", traceparent_}});
    stream_->Close(status);
  }

  const std::string& request_id() const { return head_.request_id; }
  bool finished() const { return finished_; }

  void OnAdmitted(const PlacementSummary& placement) override {
    OnMoved(placement);
    stream_->SendHeaders({{"x-request-id", head_.request_id}});
  }

  // Too late once the first response has gone out.
  void OnMoved(const PlacementSummary& placement) override {
    head_.prefill = placement.prefill;
    head_.decode = placement.decode;
  }

  void OnFrame(TokenFrame frame) override {
    stream_->Send(EncodeGenerateResponse(frame, head_sent_ ? nullptr : &head_));
    head_sent_ = true;
  }

  void OnFinished(const absl::Status& status) override { Finish(status); }

  void OnMessage(std::string) override {}

  void OnClosed(const absl::Status& status) override {
    calls_->calls_.erase(id_);
    // The client left, or was too slow: nobody reads what would come.
    if (request_) calls_->ports_.core->Cancel(request_);
  }

 private:
  InferenceCalls* const calls_;
  const uint64_t id_;
  const std::shared_ptr<Stream> stream_;
  RequestId request_;  // while the core has it
  ResponseHead head_;
  std::string traceparent_;
  bool head_sent_ = false;
  bool finished_ = false;
};

absl::Status InferenceCalls::CheckSize(absl::string_view request) const {
  if (request.size() <= ports_.max_request_bytes) return absl::OkStatus();
  return MakeError(
      ErrorReason::kInvalidField,
      absl::StrCat("the request has ", request.size(),
                   " bytes, this router takes ", ports_.max_request_bytes,
                   " at most (limits.max_message_bytes of its config)"));
}

std::unique_ptr<StreamHandler> InferenceCalls::Generate(
    const CallInfo& info, std::string request, std::shared_ptr<Stream> stream) {
  if (const absl::Status status = CheckSize(request); !status.ok()) {
    stream->Close(Reject(status));
    return nullptr;
  }
  if (static_cast<int>(calls_.size()) >= ports_.max_calls) {
    stream->Close(Reject(MakeError(
        ErrorReason::kQueueFull,
        absl::StrCat(calls_.size(), " requests run or wait here; try again"),
        "", absl::Seconds(1))));
    return nullptr;
  }
  const uint64_t id = next_call_++;
  auto call = std::make_unique<Call>(this, id, std::move(stream));
  calls_[id] = call.get();
  const bool posted = ports_.encoder_loop->TryPost(
      [this, id, info, request = std::move(request)] {
        absl::StatusOr<ClientRequest> client =
            ports_.encoder->Encode(info, request);
        ports_.loop->Post([this, id, client = std::move(client)]() mutable {
          Encoded(id, std::move(client));
        });
      });
  if (!posted) {
    call->Finish(
        Reject(MakeError(ErrorReason::kQueueFull,
                         "too many prompts wait to be encoded; try again", "",
                         absl::Seconds(1))));
  }
  return call;
}

absl::Status InferenceCalls::Reject(const absl::Status& status) {
  ports_.probe->RequestRejected(ErrorInfoOf(status).reason);
  return status;
}

void InferenceCalls::Encoded(uint64_t id,
                             absl::StatusOr<ClientRequest> request) {
  const auto call = calls_.find(id);
  // The client may have left, or the call may have been aborted, meanwhile.
  if (call == calls_.end() || call->second->finished()) return;
  if (request.ok()) {
    call->second->Submit(*std::move(request));
  } else {
    call->second->Finish(Reject(request.status()));
  }
}

absl::StatusOr<std::string> InferenceCalls::GetModelInfo(
    absl::string_view request) const {
  ASSIGN_OR_RETURN(std::string model, DecodeModelInfoRequest(request));
  RETURN_IF_ERROR(ports_.encoder->CheckModel(model));
  ModelInfo info = ports_.encoder->info();
  for (const auto& [name, worker] : ports_.core->workers().view().workers) {
    if (!worker.ready()) continue;
    if (worker.info.roles.prefill) ++info.prefill_workers;
    if (worker.info.roles.decode) ++info.decode_workers;
  }
  return EncodeModelInfoResponse(info);
}

absl::StatusOr<std::string> InferenceCalls::Abort(absl::string_view request) {
  ASSIGN_OR_RETURN(std::string request_id, DecodeAbortRequest(request));
  std::vector<Call*> aborted;
  for (const auto& [id, call] : calls_) {
    if (call->request_id() == request_id && !call->finished()) {
      aborted.push_back(call);
    }
  }
  for (Call* call : aborted) {
    call->Abort(MakeError(ErrorReason::kCancelled, "aborted by a client"));
  }
  return EncodeAbortResponse(static_cast<int>(aborted.size()));
}

}  // namespace penstock
