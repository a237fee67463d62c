#pragma once

#include "absl/status/status.h"
#include "common/config/options.h"
#include "protos/config.pb.h"

namespace penstock {

// What the file says of tenants, added to the options.
void ApplyTenants(const v1::RouterLimits& config, RouterOptions& options);

// INVALID_ARGUMENT names the tenant: a name or a key that is there twice, a
// weight out of range. Keys themselves are never named.
absl::Status CheckTenants(const RouterOptions& options);

}  // namespace penstock
