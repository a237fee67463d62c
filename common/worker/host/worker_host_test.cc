#include "common/worker/host/worker_host.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace {

// Before the model is read: there is none.
absl::Status StartWith(BackendChoice backend, const std::string& precision) {
  WorkerHostOptions options;
  options.model_path = "no-such-model.gguf";
  options.backend = backend;
  options.precision = precision;
  return WorkerHost::Create(std::move(options), {}).status();
}

TEST(WorkerHostTest, PrecisionIsRefusedWhereItSaysNothing) {
  struct Case {
    BackendChoice backend;
    const char* precision;
    const char* says;
  };
  const Case kCases[] = {
      {BackendChoice::kOracle, "fast", "backend oracle computes in f32"},
      {BackendChoice::kOracle, "exact", "take --backend auto"},
      {BackendChoice::kTimer, "exact", "backend timer computes nothing"},
      {BackendChoice::kAuto, "double", "use fast, default or exact"},
      {BackendChoice::kOracle, "double", "use fast, default or exact"},
      // These are taken: what is missing then is the model.
      {BackendChoice::kOracle, "default", "no-such-model.gguf"},
      {BackendChoice::kTimer, "default", "no-such-model.gguf"},
      {BackendChoice::kAuto, "exact", "no-such-model.gguf"},
  };
  for (const Case& one : kCases) {
    const absl::Status status = StartWith(one.backend, one.precision);
    EXPECT_NE(status.message().find(one.says), absl::string_view::npos)
        << status;
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
  }
}

}  // namespace
}  // namespace penstock
