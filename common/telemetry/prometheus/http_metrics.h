#pragma once

#include "absl/strings/string_view.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "router/core/http_probe.h"

namespace penstock {

// The HTTP server's probe as Prometheus metrics: penstock_http_*. Any thread.
class HttpMetrics : public HttpProbe {
 public:
  // The registry outlives the metrics.
  explicit HttpMetrics(prometheus::Registry& registry);

  void ConnectionsOpen(int connections) override;
  void ConnectionCut(absl::string_view reason) override;
  void HttpAnswered(absl::string_view route, int status) override;

 private:
  prometheus::Gauge& connections_;
  prometheus::Family<prometheus::Counter>& cut_;
  prometheus::Family<prometheus::Counter>& answered_;
};

}  // namespace penstock
