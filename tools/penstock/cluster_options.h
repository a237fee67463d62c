#pragma once

#include <optional>
#include <string>

namespace penstock {

// What `penstock up` was told.
struct ClusterOptions {
  static constexpr int kMaxWorkers = 64;
  static constexpr int kMaxRouters = 16;

  std::string model;  // path
  std::string model_name;
  std::string weights;  // type of matrices, as flags name it; empty: own
  int routers = 1;
  std::string kv_type;  // elements of KV; empty: what the backend keeps
  int prefill = 1;
  int decode = 1;
  bool one_process = false;
  std::string transport = "auto";
  std::string grpc = "127.0.0.1:50051";
  std::string http = "127.0.0.1:8080";  // empty: none
  std::string metrics = "127.0.0.1:0";  // of the (first) router
  std::string router_config;            // path; empty: none
  int threads = 0;                      // of the host; 0: its cores
  // Worker processes take turns on the cores; else the kernel divides them.
  bool core_turns = true;
  std::string kv_memory = "512MiB";
  std::string kv_host_memory;  // of each worker; empty: none
  std::string kv_disk;         // directory; empty: none
  std::string kv_disk_bytes;   // of each worker; empty: the workers' default
  // "host:port" of a store that runs; kOwnStore: one of this cluster's own;
  // empty: none.
  static constexpr char kOwnStore[] = "own";
  std::string kvstore;
  std::string kvstore_memory = "1GiB";  // of its own one
  std::string kvstore_disk;             // the same; directory; empty: none
  std::string weights_cache = "auto";   // as workers take it
  std::string cluster_key_file;         // made if missing; empty: a new key
  std::string backend = "auto";
  std::string precision = "default";
  std::optional<int> local_prefill_tokens;
  std::optional<int> itl_target_ms;
  std::optional<std::string> policy;
  double start_timeout_seconds = 120;
  double drain_timeout_seconds = 30;
  bool json = false;
};

}  // namespace penstock
