#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/config/options.h"
#include "router/http/server/http_exchange.h"

namespace penstock {

// Whose a request over HTTP is: by its API key, or by what a gateway in front
// says. Immutable; safe from any thread.
class HttpTenants {
 public:
  explicit HttpTenants(const RouterOptions& options);

  // The tenant's name; empty: one of the others. UNAUTHENTICATED when a key is
  // required and there is none that is known; INVALID_ARGUMENT for a name that
  // is too long.
  absl::StatusOr<std::string> TenantOf(const HttpRequest& request) const;

 private:
  // Looked up by a hash that callers cannot know: what a comparison takes tells
  // nothing of the keys.
  absl::flat_hash_map<std::string, std::string> by_key_;
  bool require_api_key_;
  bool trust_tenant_header_;
};

}  // namespace penstock
