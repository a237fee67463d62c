#include "common/telemetry/prometheus/http_metrics.h"

#include <string>

#include "common/telemetry/prometheus/metric_makers.h"

namespace penstock {

HttpMetrics::HttpMetrics(prometheus::Registry& registry)
    : connections_(Gauge(registry, {}, "penstock_http_connections",
                         "Connections of HTTP clients that are open")),
      cut_(Counters(registry, "penstock_http_connections_cut_total",
                    "Connections that the server turned away or cut off")),
      answered_(Counters(registry, "penstock_http_requests_total",
                         "HTTP requests by their end; 499: the client left")) {}

void HttpMetrics::ConnectionsOpen(int connections) {
  connections_.Set(connections);
}

void HttpMetrics::ConnectionCut(absl::string_view reason) {
  cut_.Add({{"reason", std::string(reason)}}).Increment();
}

void HttpMetrics::HttpAnswered(absl::string_view route, int status) {
  answered_
      .Add({{"route", std::string(route)}, {"code", std::to_string(status)}})
      .Increment();
}

}  // namespace penstock
