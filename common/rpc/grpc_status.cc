#include "common/rpc/grpc_status.h"

#include <string>

#include "common/rpc/status_proto.h"

namespace penstock {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()),
                      ToProto(status).SerializeAsString());
}

absl::Status FromGrpc(const grpc::Status& status) {
  v1::StatusDetails details;
  if (!details.ParseFromString(status.error_details())) details.Clear();
  // What the call says holds, whatever its details do.
  details.set_code(status.error_code());
  details.set_message(status.error_message());
  return FromProto(details);
}

std::optional<int64_t> RetryPushbackMillis(const absl::Status& status) {
  if (status.ok()) return std::nullopt;
  const int64_t millis = RetryMillis(status);
  if (millis <= 0) return std::nullopt;
  return millis;
}

}  // namespace penstock
