#include "common/rpc/status_proto.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "common/peer/error_reason.h"
#include "common/rpc/wire_check.h"

namespace penstock {
namespace {

constexpr int64_t kMaxRetryMillis = std::numeric_limits<uint32_t>::max();
constexpr int kLastCode = static_cast<int>(absl::StatusCode::kUnauthenticated);

int64_t RetryMillis(const ErrorInfo& info) {
  return std::clamp<int64_t>(absl::ToInt64Milliseconds(info.retry_after), 0,
                             kMaxRetryMillis);
}

// Our own detail among those of the status; nullopt when there is none.
std::optional<v1::ErrorDetail> DetailOf(const v1::StatusDetails& proto) {
  for (const google::protobuf::Any& any : proto.details()) {
    v1::ErrorDetail detail;
    if (any.Is<v1::ErrorDetail>() && any.UnpackTo(&detail) &&
        v1::ErrorReason_IsValid(detail.reason())) {
      return detail;
    }
  }
  return std::nullopt;
}

}  // namespace

v1::StatusDetails ToProto(const absl::Status& status) {
  v1::StatusDetails proto;
  if (status.ok()) return proto;
  const ErrorInfo info = ErrorInfoOf(status);
  v1::ErrorDetail detail;
  detail.set_reason(static_cast<v1::ErrorReason>(info.reason));
  detail.set_field(info.field);
  detail.set_retryable(info.retryable);
  detail.set_retry_after_ms(static_cast<uint32_t>(RetryMillis(info)));
  detail.set_kept_tokens(static_cast<uint32_t>(info.kept_tokens));
  proto.set_code(static_cast<int>(status.code()));
  proto.set_message(std::string(status.message()));
  proto.add_details()->PackFrom(detail);
  return proto;
}

absl::Status FromProto(const v1::StatusDetails& proto) {
  if (proto.code() == 0) return absl::OkStatus();
  const bool known = proto.code() > 0 && proto.code() <= kLastCode;
  const auto code = known ? static_cast<absl::StatusCode>(proto.code())
                          : absl::StatusCode::kUnknown;
  const std::optional<v1::ErrorDetail> detail = DetailOf(proto);
  if (detail.has_value()) {
    const auto reason = static_cast<ErrorReason>(detail->reason());
    // A detail that contradicts the code is not one of ours.
    if (CodeOf(reason) == code) {
      absl::Status error =
          MakeError(reason, proto.message(), detail->field(),
                    absl::Milliseconds(detail->retry_after_ms()));
      const uint32_t kept = detail->kept_tokens();
      // A claim beyond any prompt is no claim.
      if (kept == 0 || kept > kMaxWireCount) return error;
      return WithKeptTokens(std::move(error), static_cast<int>(kept));
    }
  }
  return absl::Status(code, proto.message());
}

int64_t RetryMillis(const absl::Status& status) {
  return RetryMillis(ErrorInfoOf(status));
}

}  // namespace penstock
