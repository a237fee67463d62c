#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/penstock/client.h"
#include "tools/penstock/latency_summary.h"
#include "tools/penstock/load_plan.h"

namespace penstock {

// Plays a plan against a server: each request is sent when it is due, whatever
// the server does meanwhile, or as soon as fewer than `concurrency` run. Used
// once, by one thread.
class LoadGenerator {
 public:
  struct Options {
    int concurrency = 0;     // 0: no bound
    absl::Duration timeout;  // of one request
  };
  struct Result {
    std::vector<RequestRecord> records;
    double elapsed_ms = 0;    // from the first request due to the last end
    std::string first_error;  // empty: none failed
  };

  // `client` outlives the generator.
  LoadGenerator(Client& client, const Options& options)
      : client_(client), options_(options) {}

  // Waits until every request has ended.
  Result Run(const std::vector<PlannedRequest>& plan);

 private:
  class Call;
  void OnEnd(size_t index, RequestRecord record, const grpc::Status& status);

  Client& client_;
  const Options options_;

  std::mutex mutex_;
  std::condition_variable ended_;
  int running_ = 0;  // guarded by mutex_, as is result_ while calls run
  Result result_;
};

}  // namespace penstock
