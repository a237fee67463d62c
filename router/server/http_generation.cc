#include "router/server/http_generation.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/peer/error_reason.h"
#include "router/http/openai/http_error.h"
#include "router/server/request_seed.h"

namespace penstock {
namespace {

constexpr int kClientLeft = 499;

}  // namespace

HttpResponse ErrorResponse(const absl::Status& status, AnswerKind kind,
                           const std::string& request_id) {
  const HttpError error = ToHttpError(status, kind);
  HttpResponse response;
  response.status = error.status;
  response.headers = {{"Content-Type", "application/json"},
                      {"x-request-id", request_id}};
  if (error.retry_after > absl::ZeroDuration()) {
    const int64_t seconds =
        absl::ToInt64Seconds(absl::Ceil(error.retry_after, absl::Seconds(1)));
    response.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  }
  // Clients try again by themselves after these unless told otherwise.
  if (error.status == 429 || error.status >= 500) {
    response.headers.emplace_back("x-should-retry",
                                  error.retry_helps ? "true" : "false");
  }
  response.body = DumpJson(error.body);
  return response;
}

// The client of one prompt's request.
class HttpGeneration::PromptSink : public ClientSink {
 public:
  PromptSink(HttpGeneration* call, int prompt) : call_(call), prompt_(prompt) {}

  void OnAdmitted(const PlacementSummary& placement) override {
    call_->OnAdmitted(placement);
  }
  void OnMoved(const PlacementSummary& placement) override {
    call_->placement_ = placement;
  }
  void OnFrame(TokenFrame frame) override {
    call_->OnFrame(prompt_, std::move(frame));
  }
  void OnFinished(const absl::Status& status) override {
    request = RequestId();
    call_->OnPromptFinished(status);
  }

  RequestId request;  // while the core has it

 private:
  HttpGeneration* const call_;
  const int prompt_;
};

HttpGeneration::HttpGeneration(Options options, Ports ports,
                               std::shared_ptr<HttpExchange> exchange)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      exchange_(std::move(exchange)) {}

HttpGeneration::~HttpGeneration() = default;

void HttpGeneration::Submit(HttpJob job) {
  writer_.emplace(std::move(job.answer), ports_.tokenizer);
  for (ClientRequest& client : job.requests) {
    const int prompt = static_cast<int>(sinks_.size());
    if (!client.has_seed) {
      client.request.sampling.seed = SeedOf(options_.request_id, prompt);
    }
    sinks_.push_back(std::make_unique<PromptSink>(this, prompt));
  }
  for (size_t i = 0; i < sinks_.size(); ++i) {
    const absl::StatusOr<RequestId> submitted = ports_.core->Submit(
        std::move(job.requests[i].request), sinks_[i].get());
    if (!submitted.ok()) {
      Finish(submitted.status());
      CancelRunning();
      return;
    }
    sinks_[i]->request = *submitted;
  }
}

void HttpGeneration::Reject(const absl::Status& status) {
  ports_.probe->RequestRejected(ErrorInfoOf(status).reason);
  Finish(status);
}

void HttpGeneration::OnAdmitted(const PlacementSummary& placement) {
  placement_ = placement;
  if (begun_ || finished_ || !writer_->streams()) return;
  begun_ = true;
  exchange_->Begin(200, {{"Content-Type", "text/event-stream; charset=utf-8"},
                         {"Cache-Control", "no-cache"},
                         {"X-Accel-Buffering", "no"},
                         {"x-request-id", options_.request_id}});
}

void HttpGeneration::OnFrame(int prompt, TokenFrame frame) {
  if (finished_) return;
  absl::StatusOr<std::string> events = writer_->Add(prompt, std::move(frame));
  if (!events.ok()) {
    Finish(events.status());
  } else if (!events->empty()) {
    exchange_->Send(*std::move(events));
  }
}

void HttpGeneration::OnPromptFinished(const absl::Status& status) {
  ++ended_;
  if (!status.ok()) {
    Finish(status);
  } else if (ended_ == sinks_.size()) {
    Finish(absl::OkStatus());
  }
}

void HttpGeneration::Finish(const absl::Status& status) {
  if (std::exchange(finished_, true)) return;
  Log(status.ok() ? LogLevel::kDebug : LogLevel::kInfo, "request ended",
      {{"request", options_.request_id},
       {"outcome", std::string(OutcomeName(status))},
       {"why", std::string(status.message())},
       {"prefill", placement_.prefill},
       {"decode", placement_.decode}});
  int http_status = 200;
  if (begun_) {
    exchange_->Send(status.ok()
                        ? writer_->Finish()
                        : ErrorEvent(ToHttpError(status, options_.kind).body));
    exchange_->End();
  } else if (status.ok()) {
    exchange_->Respond({200,
                        {{"Content-Type", "application/json"},
                         {"x-request-id", options_.request_id}},
                        writer_->Finish()});
  } else {
    HttpResponse error =
        ErrorResponse(status, options_.kind, options_.request_id);
    http_status = error.status;
    exchange_->Respond(std::move(error));
  }
  ports_.http_probe->HttpAnswered(options_.route, http_status);
}

void HttpGeneration::OnClosed(const absl::Status& status) {
  if (!std::exchange(finished_, true)) {
    ports_.http_probe->HttpAnswered(options_.route, kClientLeft);
    Log(LogLevel::kInfo, "request ended",
        {{"request", options_.request_id},
         {"outcome", "CANCELLED"},
         {"why", std::string(status.message())}});
  }
  // Nobody reads what would come.
  CancelRunning();
  ports_.on_gone();
}

void HttpGeneration::CancelRunning() {
  for (const auto& sink : sinks_) {
    if (sink->request) ports_.core->Cancel(sink->request);
  }
}

}  // namespace penstock
