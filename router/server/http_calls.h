#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/env/random.h"
#include "common/runtime/inbox.h"
#include "router/core/http_probe.h"
#include "router/core/router_core.h"
#include "router/http/server/http_exchange.h"
#include "router/server/http_generation.h"
#include "router/server/http_tenants.h"
#include "router/server/request_encoder.h"

namespace penstock {

// Everything that the router answers over HTTP. The router loop's own; encoding
// runs on the encoder's loop.
class HttpCalls {
 public:
  // All outlive the calls.
  struct Ports {
    RouterCore* core = nullptr;
    const RequestEncoder* encoder = nullptr;
    RouterProbe* probe = nullptr;  // hears of what never reaches the core
    HttpProbe* http_probe = nullptr;
    Random* random = nullptr;  // for request ids that are absent
    std::shared_ptr<Inbox> loop;
    std::shared_ptr<Inbox> encoder_loop;
    std::function<std::string()> metrics_page;  // any thread
    int max_calls = 0;  // that generate: running, queued and being encoded
    const HttpTenants* tenants = nullptr;
  };
  explicit HttpCalls(Ports ports);

  // An HttpHandler.
  std::unique_ptr<HttpCall> Handle(HttpRequest request,
                                   std::shared_ptr<HttpExchange> exchange);

 private:
  // One request and what it needs to be answered.
  struct Visit {
    HttpRequest request;
    std::string route;  // for metrics: one of ours
    std::shared_ptr<HttpExchange> exchange;
  };
  struct Route {
    const char* method;
    std::unique_ptr<HttpCall> (HttpCalls::*handle)(Visit visit);
    bool needs_key = true;  // where keys are required
  };

  std::unique_ptr<HttpCall> Chat(Visit visit);
  std::unique_ptr<HttpCall> Completion(Visit visit);
  std::unique_ptr<HttpCall> Models(Visit visit);
  std::unique_ptr<HttpCall> OneModel(Visit visit);
  std::unique_ptr<HttpCall> Tokenize(Visit visit);
  std::unique_ptr<HttpCall> Detokenize(Visit visit);
  std::unique_ptr<HttpCall> Health(Visit visit);
  std::unique_ptr<HttpCall> Metrics(Visit visit);

  std::unique_ptr<HttpCall> Generate(AnswerKind kind, Visit visit);
  void Encoded(uint64_t call, absl::StatusOr<HttpJob> job);
  // Answers on the encoder's loop with what `answer` makes of the body.
  std::unique_ptr<HttpCall> OnEncoder(
      Visit visit,
      std::function<absl::StatusOr<ApiJson>(const RequestEncoder&,
                                            const std::string& body)>
          answer);
  void Answer(const Visit& visit, HttpResponse response);
  void AnswerError(const Visit& visit, const absl::Status& status);
  std::unique_ptr<HttpCall> NoSuchPath(Visit visit);
  std::unique_ptr<HttpCall> Unwelcome(Visit visit, const absl::Status& why);
  std::unique_ptr<HttpCall> WrongMethod(Visit visit, const char* allowed);
  ApiJson ModelJson() const;

  const Ports ports_;
  const int64_t started_;  // seconds since 1970
  const std::map<std::string, Route> routes_;
  uint64_t next_call_ = 1;
  std::map<uint64_t, HttpGeneration*> calls_;  // owned by their exchanges
};

}  // namespace penstock
