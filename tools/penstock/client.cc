#include "tools/penstock/client.h"

#include <chrono>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/create_channel.h"
#include "protos/errors.pb.h"

namespace penstock {
namespace {

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A client of its own each time: benchmarks must not share a connection
  // that another command left behind.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

std::chrono::system_clock::time_point DeadlineIn(absl::Duration timeout) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout);
}

}  // namespace

Client::Client(const std::string& server)
    : server_(server),
      channel_(grpc::CreateCustomChannel(
          server, grpc::InsecureChannelCredentials(), Arguments())),
      stub_(v1::Inference::NewStub(channel_)) {}

absl::Status Client::WaitForConnection(absl::Duration timeout) {
  if (channel_->WaitForConnected(DeadlineIn(timeout))) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("no router answers at ", server_,
                   "; start one with `penstock up MODEL`, or name another "
                   "with --server"));
}

absl::StatusOr<v1::GetModelInfoResponse> Client::GetModelInfo(
    absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineIn(timeout));
  v1::GetModelInfoResponse response;
  const grpc::Status status =
      stub_->GetModelInfo(&context, v1::GetModelInfoRequest(), &response);
  if (!status.ok()) return DescribeFailure(status);
  return response;
}

absl::Status DescribeFailure(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string message = status.error_message();
  v1::StatusDetails details;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      v1::ErrorDetail detail;
      if (!any.UnpackTo(&detail)) continue;
      const std::string name = v1::ErrorReason_Name(detail.reason());
      absl::StrAppend(&message, " [", absl::StripPrefix(name, "ERROR_REASON_"));
      if (!detail.field().empty()) {
        absl::StrAppend(&message, ", field ", detail.field());
      }
      if (detail.retryable()) absl::StrAppend(&message, ", worth a retry");
      absl::StrAppend(&message, "]");
    }
  }
  if (message.empty()) message = "the call failed without a message";
  // gRPC's codes and Abseil's are the same numbers.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      message);
}

}  // namespace penstock
