#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace penstock {

// HTTP as the rest of the code sees it: requests that have come whole, and our
// end of answering them. No type of the HTTP library appears here.

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "GET"; HEAD arrives as GET, its answer's body is left
  std::string path;    // without the query
  std::string content_type;
  std::string request_id;     // x-request-id; may be empty
  std::string traceparent;    // may be empty
  std::string authorization;  // may be empty
  std::string tenant;         // x-tenant-id; may be empty
  std::string body;
};

struct HttpResponse {
  int status = 200;
  // Beside those about length and connection, which the server adds.
  HttpHeaders headers;
  std::string body;
};

// Our end of one request. Any thread. Answered once: by Respond, or by Begin,
// Sends and End. After the exchange is over every call is a no-op; dropped
// unanswered, its connection ends.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  virtual void Respond(HttpResponse response) = 0;

  // The head of an answer whose body comes in pieces of unknown number.
  virtual void Begin(int status, HttpHeaders headers) = 0;
  // When the client reads so slowly that too much waits, the exchange fails.
  virtual void Send(std::string piece) = 0;
  virtual void End() = 0;
};

// What hears of one exchange. Every call, and the destructor, runs on the
// handler's loop while that loop lives.
class HttpCall {
 public:
  virtual ~HttpCall() = default;
  // The exchange is over; nothing follows. OK when its answer was written,
  // CANCELLED when the client went away, RESOURCE_EXHAUSTED when it read too
  // slowly.
  virtual void OnClosed(const absl::Status& status) = 0;
};

// Takes a request, on the handler's loop. Null when it was answered at once.
using HttpHandler = std::function<std::unique_ptr<HttpCall>(
    HttpRequest request, std::shared_ptr<HttpExchange> exchange)>;

}  // namespace penstock
