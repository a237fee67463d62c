#include "common/rpc/grpc_status.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "common/peer/error_reason.h"
#include "common/rpc/wire_check.h"
#include "protos/errors.pb.h"

namespace penstock {
namespace {

constexpr int64_t kMaxRetryMillis = std::numeric_limits<uint32_t>::max();

int64_t RetryMillis(const ErrorInfo& info) {
  return std::clamp<int64_t>(absl::ToInt64Milliseconds(info.retry_after), 0,
                             kMaxRetryMillis);
}

std::string EncodeDetails(const absl::Status& status) {
  const ErrorInfo info = ErrorInfoOf(status);
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(info.reason));
  detail.set_field(info.field);
  detail.set_retryable(info.retryable);
  detail.set_retry_after_ms(static_cast<uint32_t>(RetryMillis(info)));
  detail.set_kept_tokens(static_cast<uint32_t>(info.kept_tokens));
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  details.add_details()->PackFrom(detail);
  return details.SerializeAsString();
}

// Our own detail among those of the status; nullopt when there is none.
std::optional<v1::ErrorDetail> DecodeDetails(const std::string& bytes) {
  v1::StatusDetails details;
  if (bytes.empty() || !details.ParseFromString(bytes)) return std::nullopt;
  for (const google::protobuf::Any& any : details.details()) {
    v1::ErrorDetail detail;
    if (any.Is<v1::ErrorDetail>() && any.UnpackTo(&detail) &&
        v1::ErrorReason_IsValid(detail.reason())) {
      return detail;
    }
  }
  return std::nullopt;
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()),
                      std::string(status.message()), EncodeDetails(status));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const auto detail = DecodeDetails(status.error_details());
  if (detail.has_value()) {
    const auto reason = static_cast<ErrorReason>(detail->reason());
    // A detail that contradicts the code is not one of ours.
    if (CodeOf(reason) == code) {
      absl::Status error =
          MakeError(reason, status.error_message(), detail->field(),
                    absl::Milliseconds(detail->retry_after_ms()));
      const uint32_t kept = detail->kept_tokens();
      // A claim beyond any prompt is no claim.
      if (kept == 0 || kept > kMaxWireCount) return error;
      return WithKeptTokens(std::move(error), static_cast<int>(kept));
    }
  }
  return absl::Status(code, status.error_message());
}

std::optional<int64_t> RetryPushbackMillis(const absl::Status& status) {
  if (status.ok()) return std::nullopt;
  const int64_t millis = RetryMillis(ErrorInfoOf(status));
  if (millis <= 0) return std::nullopt;
  return millis;
}

}  // namespace penstock
