#include "tools/penstock/client.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "common/rpc/grpc_status.h"
#include "grpcpp/create_channel.h"

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
  const absl::Status failure = FromGrpc(status);
  if (failure.ok()) return failure;
  const ErrorInfo info = ErrorInfoOf(failure);
  std::string message(failure.message());
  absl::StrAppend(&message, message.empty() ? "[" : " [",
                  ReasonName(info.reason));
  if (!info.field.empty()) absl::StrAppend(&message, ", field ", info.field);
  if (info.retryable) absl::StrAppend(&message, ", worth a retry");
  absl::StrAppend(&message, "]");
  return absl::Status(failure.code(), message);
}

}  // namespace penstock
