#include "common/config/tenant_config.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr size_t kShortestKey = 8;
constexpr int kMostWeight = 1 << 20;

TenantOptions TenantOf(const v1::TenantConfig& config) {
  // What does not fit is out of range, and said to be.
  auto count = [](uint32_t value) {
    return static_cast<int>(std::min<uint32_t>(value, INT32_MAX));
  };
  TenantOptions tenant;
  tenant.name = config.name();
  if (config.has_weight()) tenant.weight = count(config.weight());
  tenant.max_running = count(config.max_running());
  tenant.max_queued = count(config.max_queued());
  tenant.api_keys.assign(config.api_keys().begin(), config.api_keys().end());
  return tenant;
}

absl::Status CheckWeight(absl::string_view of, int weight) {
  if (weight >= 1 && weight <= kMostWeight) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "weight of ", of, " is ", weight, "; allowed: 1 to ", kMostWeight));
}

absl::Status CheckKeys(const TenantOptions& tenant,
                       std::set<std::string>& keys) {
  for (const std::string& key : tenant.api_keys) {
    if (key.size() >= kShortestKey && keys.insert(key).second) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "limits.tenants: an API key of \"", tenant.name, "\" has fewer than ",
        kShortestKey, " characters or is there twice"));
  }
  return absl::OkStatus();
}

}  // namespace

void ApplyTenants(const v1::RouterLimits& config, RouterOptions& options) {
  for (const auto& tenant : config.tenants()) {
    options.tenants.push_back(TenantOf(tenant));
  }
  if (config.has_other_tenants()) {
    options.other_tenants = TenantOf(config.other_tenants());
  }
}

absl::Status CheckTenants(const RouterOptions& options) {
  std::set<std::string> names, keys;
  for (const TenantOptions& tenant : options.tenants) {
    if (tenant.name.empty() || !names.insert(tenant.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("limits.tenants: the name \"", tenant.name,
                       "\" is empty or there twice; give each tenant its own"));
    }
    RETURN_IF_ERROR(
        CheckWeight(absl::StrCat("tenant ", tenant.name), tenant.weight));
    RETURN_IF_ERROR(CheckKeys(tenant, keys));
  }
  if (!options.other_tenants.api_keys.empty()) {
    return absl::InvalidArgumentError(
        "limits.other_tenants: those without a name have no API keys");
  }
  if (options.http.require_api_key && keys.empty()) {
    return absl::InvalidArgumentError(
        "http.require_api_key is set; give a tenant in limits.tenants "
        "api_keys");
  }
  return CheckWeight("other_tenants", options.other_tenants.weight);
}

}  // namespace penstock
