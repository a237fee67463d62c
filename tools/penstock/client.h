#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "protos/inference.grpc.pb.h"

namespace penstock {

inline constexpr char kDefaultServer[] = "127.0.0.1:50051";

// A connection to a router, made on first use. Thread-safe.
class Client {
 public:
  explicit Client(const std::string& server);

  v1::Inference::Stub& stub() { return *stub_; }
  const std::string& server() const { return server_; }

  // UNAVAILABLE, with the way out, when nothing answers within `timeout`.
  absl::Status WaitForConnection(absl::Duration timeout);

  // UNAVAILABLE, or what the router says.
  absl::StatusOr<v1::GetModelInfoResponse> GetModelInfo(absl::Duration timeout);

 private:
  const std::string server_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Inference::Stub> stub_;
};

// A failed call in words: the message, then the stable reason and the field
// that the status details name.
absl::Status DescribeFailure(const grpc::Status& status);

}  // namespace penstock
