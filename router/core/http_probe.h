#pragma once

#include "absl/strings/string_view.h"

namespace penstock {

// What the HTTP server tells metrics. Any thread; must not block. Texts come
// from small fixed sets: never what a client wrote.
class HttpProbe {
 public:
  virtual ~HttpProbe() = default;

  // After each change.
  virtual void ConnectionsOpen(int connections) = 0;
  // Turned away, or ended by the server for more than having been idle:
  // "full", "header_timeout", "body_timeout", "slow_reader".
  virtual void ConnectionCut(absl::string_view reason) = 0;
  // A request was answered with `status`, 499 when its client left first.
  virtual void HttpAnswered(absl::string_view route, int status) = 0;
};

class NullHttpProbe : public HttpProbe {
 public:
  void ConnectionsOpen(int) override {}
  void ConnectionCut(absl::string_view) override {}
  void HttpAnswered(absl::string_view, int) override {}
};

}  // namespace penstock
