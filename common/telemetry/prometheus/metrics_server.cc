#include "common/telemetry/prometheus/metrics_server.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "prometheus/exposer.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"

namespace penstock {

MetricsServer::MetricsServer()
    : registry_(std::make_shared<prometheus::Registry>()) {}

MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Create(
    const std::string& listen, const std::string& role,
    const std::string& version) {
  std::unique_ptr<MetricsServer> server(new MetricsServer());
  prometheus::BuildGauge()
      .Name("penstock_build_info")
      .Help("Always 1; the labels say what runs here")
      .Register(*server->registry_)
      .Add({{"role", role}, {"version", version}})
      .Set(1);
  if (listen.empty()) return server;
  // The one library here that throws: when it cannot bind.
  try {
    server->exposer_ = std::make_unique<prometheus::Exposer>(listen, 1);
  } catch (const std::exception& e) {
    return absl::UnavailableError(
        absl::StrCat("metrics address ", listen,
                     " cannot be listened on (is the port taken?); choose "
                     "another with --metrics-listen"));
  }
  server->exposer_->RegisterCollectable(server->registry_);
  absl::string_view host(listen);
  host = host.substr(0, host.rfind(':'));
  server->address_ =
      absl::StrCat(host, ":", server->exposer_->GetListeningPorts().front());
  return server;
}

std::string MetricsServer::Render() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace penstock
