#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace penstock {

// What a binary was told, by flags, then by --config, then by these defaults.
// Plain and validated; nothing past common/config sees flags or protos.

struct ListenOptions {
  std::string grpc;       // "host:port"; port 0: any free one
  std::string metrics;    // "host:port" of /metrics; empty: not served
  std::string http = {};  // "host:port" of a router's HTTP; empty: not served
};

// Bounds on what HTTP clients do; see router/http/server.
struct HttpOptions {
  int max_header_bytes = 16 << 10;
  int max_connections = 1024;
  int max_queued_bytes = 1 << 20;
  absl::Duration idle_timeout = absl::Seconds(75);
  absl::Duration header_timeout = absl::Seconds(10);
  absl::Duration body_timeout = absl::Seconds(60);
  absl::Duration write_timeout = absl::Seconds(30);
  // Who has no tenant's key is turned away.
  bool require_api_key = false;
  // A gateway in front says whose a request is: x-tenant-id.
  bool trust_tenant_header = false;
};

// What a tenant may have beside others; see router/core/admission.
struct TenantOptions {
  std::string name;
  int weight = 1;
  int max_running = 0;  // 0: any number
  int max_queued = 0;   // 0: any number
  // By which its requests over HTTP are known.
  std::vector<std::string> api_keys = {};
};

struct RouterOptions {
  std::string model;       // path of a GGUF file or Hugging Face folder
  std::string model_name;  // empty: the file's or folder's
  std::string weights;     // type that workers store matrices as; empty: own
  std::string kv_type;     // elements of KV; empty: what the backend keeps
  ListenOptions listen{"127.0.0.1:50051", "127.0.0.1:9100", "127.0.0.1:8080"};
  HttpOptions http;
  std::string cluster_key_file;     // empty: the key is empty (loopback only)
  int max_message_bytes = 4 << 20;  // of a gRPC message or an HTTP body
  int max_concurrent_requests = 256;
  int max_queued_requests = 1024;
  absl::Duration max_timeout = absl::Minutes(10);
  std::string policy = "prefix_aware";  // how workers are chosen
  // Who has waited in the queue for longer is refused after all.
  absl::Duration max_queue_age = absl::Minutes(1);
  std::vector<TenantOptions> tenants;
  TenantOptions other_tenants;
  int local_prefill_tokens = 16;
  // For what is known of the workers' caches; beyond it, what nobody asked for
  // lately is forgotten.
  uint64_t prefix_memory_bytes = uint64_t{1} << 30;
  // prefix_aware: decode also prefills what is predicted to cost less there.
  bool spill_prefill = true;
  // A silent worker is pinged after this, and lost after as much again.
  absl::Duration worker_timeout = absl::Seconds(3);
  // How long requests wait for workers after one has come or gone.
  absl::Duration worker_patience = absl::Seconds(10);
};

struct WorkerOptions {
  std::string model;
  std::string model_name;
  std::string weights;
  std::string kv_type;  // elements of KV; empty: what the backend keeps
  ListenOptions listen{"127.0.0.1:0", "127.0.0.1:0"};
  std::string cluster_key_file;
  std::string name;       // empty: role, host and a random part
  std::string advertise;  // "host:port"; empty: what is listened on
  // Where KV pages come in over TCP, numeric; port 0: any free one.
  std::string data_listen = "127.0.0.1:0";
  std::string data_advertise;  // numeric host; empty: the one listened on
  std::vector<std::string> routers = {"127.0.0.1:50051"};
  uint64_t kv_memory_bytes = uint64_t{512} << 20;
  uint64_t kv_host_memory_bytes = 0;  // for pages that leave it; 0: none
  std::string kv_disk;                // directory for the same; empty: none
  uint64_t kv_disk_bytes = uint64_t{8} << 30;  // each worker's share of it
  std::string kvstore;  // "host:port" of the shared store; empty: none
  // Folder of packed weights, auto (the user's cache folder) or off.
  std::string weights_cache = "auto";
  int threads = 0;       // 0: all cores of the host
  int host_workers = 1;  // worker processes that share the host's cores
  // File through which those take turns on the cores; empty: they do not.
  std::string core_ledger;
  // auto, avx512, avx2, scalar, oracle, timer
  std::string backend = "auto";
  std::string precision = "default";  // fast, default, exact
  std::string transport = "auto";     // auto, shm, tcp, inproc
  int max_sequences = 64;
  int max_step_tokens = 512;
  // Of steps that decode: prompts beside them are cut to fit; 0: however long.
  absl::Duration itl_target = absl::Milliseconds(50);
  int max_queued_requests = 512;
};

}  // namespace penstock
