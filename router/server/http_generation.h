#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/core/http_probe.h"
#include "router/core/router_core.h"
#include "router/http/openai/answer_writer.h"
#include "router/http/server/http_exchange.h"
#include "router/server/http_job.h"

namespace penstock {

// An error as a whole response.
HttpResponse ErrorResponse(const absl::Status& status, AnswerKind kind,
                           const std::string& request_id);

// One running call that generates: its exchange's end here and the sinks of its
// requests, one for each prompt. The router loop's own.
class HttpGeneration : public HttpCall {
 public:
  struct Options {
    AnswerKind kind = AnswerKind::kChat;
    std::string route;  // for metrics
    std::string request_id;
  };
  // All outlive the call.
  struct Ports {
    RouterCore* core = nullptr;
    const Tokenizer* tokenizer = nullptr;
    RouterProbe* probe = nullptr;
    HttpProbe* http_probe = nullptr;
    std::function<void()> on_gone;  // when it is over, before it goes
  };
  HttpGeneration(Options options, Ports ports,
                 std::shared_ptr<HttpExchange> exchange);
  ~HttpGeneration() override;

  // Its requests are known: to the core with them.
  void Submit(HttpJob job);
  // It never came so far.
  void Reject(const absl::Status& status);

  void OnClosed(const absl::Status& status) override;

 private:
  class PromptSink;

  void OnAdmitted(const PlacementSummary& placement);
  void OnFrame(int prompt, TokenFrame frame);
  void OnPromptFinished(const absl::Status& status);
  // Ends the answer, well or badly, once.
  void Finish(const absl::Status& status);
  void CancelRunning();

  const Options options_;
  const Ports ports_;
  const std::shared_ptr<HttpExchange> exchange_;
  std::optional<AnswerWriter> writer_;
  std::vector<std::unique_ptr<PromptSink>> sinks_;
  size_t ended_ = 0;            // of sinks_
  PlacementSummary placement_;  // of the last that was admitted
  bool begun_ = false;          // the head of a stream is out
  bool finished_ = false;       // all of the answer is out
};

}  // namespace penstock
