#include "router/server/http_tenants.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

constexpr size_t kMaxName = 256;  // as over gRPC

// "Bearer KEY"; empty: something else.
absl::string_view KeyOf(absl::string_view authorization) {
  constexpr absl::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return "";
  return absl::StripAsciiWhitespace(authorization.substr(kScheme.size()));
}

}  // namespace

HttpTenants::HttpTenants(const RouterOptions& options)
    : require_api_key_(options.http.require_api_key),
      trust_tenant_header_(options.http.trust_tenant_header) {
  for (const TenantOptions& tenant : options.tenants) {
    for (const std::string& key : tenant.api_keys) {
      by_key_.emplace(key, tenant.name);
    }
  }
}

absl::StatusOr<std::string> HttpTenants::TenantOf(
    const HttpRequest& request) const {
  const auto found = by_key_.find(KeyOf(request.authorization));
  if (found != by_key_.end()) return found->second;
  if (require_api_key_) {
    return absl::UnauthenticatedError(
        "an API key of this server is needed: send Authorization: Bearer KEY");
  }
  if (!trust_tenant_header_) return "";
  if (request.tenant.size() > kMaxName) {
    return MakeError(ErrorReason::kInvalidField,
                     absl::StrCat("x-tenant-id has ", request.tenant.size(),
                                  " bytes; at most ", kMaxName),
                     "x-tenant-id");
  }
  return request.tenant;
}

}  // namespace penstock
