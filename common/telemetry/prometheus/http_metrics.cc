#include "common/telemetry/prometheus/http_metrics.h"

#include <string>

namespace penstock {

HttpMetrics::HttpMetrics(prometheus::Registry& registry)
    : connections_(prometheus::BuildGauge()
                       .Name("penstock_http_connections")
                       .Help("Connections of HTTP clients that are open")
                       .Register(registry)
                       .Add({})),
      cut_(prometheus::BuildCounter()
               .Name("penstock_http_connections_cut_total")
               .Help("Connections that the server turned away or cut off")
               .Register(registry)),
      answered_(prometheus::BuildCounter()
                    .Name("penstock_http_requests_total")
                    .Help("HTTP requests by their end; 499: the client left")
                    .Register(registry)) {}

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
