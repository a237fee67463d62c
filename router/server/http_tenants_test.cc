#include "router/server/http_tenants.h"

#include "common/peer/error_reason.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

HttpRequest From(const std::string& authorization,
                 const std::string& tenant = "") {
  HttpRequest request;
  request.authorization = authorization;
  request.tenant = tenant;
  return request;
}

RouterOptions TwoTenants() {
  RouterOptions options;
  options.tenants.resize(3);
  options.tenants[0].name = "paying";
  options.tenants[0].api_keys = {"key-1", "key-2"};
  options.tenants[1].name = "batch";
  options.tenants[1].api_keys = {"key-3"};
  options.tenants[2].name = "by-grpc";
  return options;
}

TEST(HttpTenantsTest, AKeyNamesItsTenant) {
  const HttpTenants tenants(TwoTenants());
  EXPECT_EQ(*tenants.TenantOf(From("Bearer key-1")), "paying");
  EXPECT_EQ(*tenants.TenantOf(From("bearer  key-2 ")), "paying");
  EXPECT_EQ(*tenants.TenantOf(From("Bearer key-3")), "batch");
}

TEST(HttpTenantsTest, WhoHasNoKeyIsOneOfTheOthers) {
  const HttpTenants tenants(TwoTenants());
  for (const char* other :
       {"", "Bearer", "Bearer ", "Bearer none", "key-1", "Basic key-1"}) {
    EXPECT_EQ(*tenants.TenantOf(From(other)), "") << other;
  }
  // Anybody could say so.
  EXPECT_EQ(*tenants.TenantOf(From("", "paying")), "");
}

TEST(HttpTenantsTest, AKeyMayBeRequired) {
  RouterOptions options = TwoTenants();
  options.http.require_api_key = true;
  const HttpTenants tenants(options);
  EXPECT_EQ(*tenants.TenantOf(From("Bearer key-3")), "batch");
  for (const char* other : {"", "Bearer none", "Bearer ", "key-1"}) {
    EXPECT_TRUE(
        absl::IsUnauthenticated(tenants.TenantOf(From(other)).status()));
  }
}

TEST(HttpTenantsTest, AGatewayMayBeTrusted) {
  RouterOptions options = TwoTenants();
  options.http.trust_tenant_header = true;
  const HttpTenants tenants(options);
  EXPECT_EQ(*tenants.TenantOf(From("", "anybody")), "anybody");
  EXPECT_EQ(*tenants.TenantOf(From("Bearer key-1", "anybody")), "paying");
  EXPECT_EQ(
      ErrorInfoOf(tenants.TenantOf(From("", std::string(257, 'x'))).status())
          .field,
      "x-tenant-id");
}

}  // namespace
}  // namespace penstock
