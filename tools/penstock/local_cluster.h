#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/penstock/process_group.h"

namespace penstock {

// Router, prefill and decode workers as children of this process: started in
// order, watched, and drained in order. Used once, by the main thread.
class LocalCluster {
 public:
  static constexpr int kMaxWorkers = 64;

  struct Options {
    std::string model;
    std::string model_name;
    int prefill = 1;
    int decode = 1;
    bool one_process = false;
    std::string transport = "auto";
    std::string grpc = "127.0.0.1:50051";
    std::string http = "127.0.0.1:8080";
    int threads = 0;
    std::string kv_memory;
    std::string backend;
    double start_timeout_seconds = 120;
    double drain_timeout_seconds = 30;
    bool json = false;
  };

  explicit LocalCluster(const Options& options);

  // Returns OK after a drain that a signal asked for, and the reason when the
  // cluster could not start or its router ended.
  absl::Status Run();

 private:
  struct Server {
    ProcessGroup::Member* member = nullptr;
    std::string role;
    std::string grpc;     // as announced
    std::string metrics;  // as announced
  };

  absl::Status StartAll();
  // Starts one server and waits until it says where it listens.
  absl::StatusOr<Server> StartServer(const std::string& role,
                                     const std::string& name,
                                     std::vector<std::string> arguments);
  absl::Status WaitUntilServing();
  absl::Status Watch();
  void Stop();
  void StopServers(bool routers);
  void PrintReady() const;
  void PrintReadyJson() const;

  const Options options_;
  ProcessGroup group_;
  std::string directory_;        // of the server binaries
  int key_fd_ = -1;              // a memfd with the cluster key
  std::vector<Server> servers_;  // the router is the first
};

}  // namespace penstock
