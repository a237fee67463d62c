#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/engine/core_ledger.h"
#include "common/model/files/model_file.h"
#include "common/peer/peer.h"
#include "common/runtime/loop_thread.h"
#include "common/transfer/arena/arena_memory.h"
#include "common/worker/core/worker_core.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// The last one computes nothing: for measuring what is around it.
enum class BackendChoice { kAuto, kAvx512, kAvx2, kScalar, kOracle, kTimer };

// Names as in flags; INVALID_ARGUMENT lists the known ones.
absl::StatusOr<BackendChoice> ParseBackend(absl::string_view name);

struct WorkerHostOptions {
  WorkerKey self;
  WorkerRoles roles;
  std::string model_path;
  std::string model_name;     // empty: the file's or folder's
  std::string weights;        // see ModelLoadOptions
  std::string weights_cache;  // folder of packed weights; empty: none
  std::string cluster_key;
  BackendChoice backend = BackendChoice::kAuto;
  std::string kv_type;  // empty: F16, or F32 of the oracle
  // Of the CPU backend: ParsePrecision. Others take the default only.
  std::string precision = "default";
  int threads = 1;
  bool spin = false;  // threads may spin: there are cores for all of them
  // File through which workers take turns on the cores; empty: they do not.
  std::string core_ledger;
  uint64_t kv_memory_bytes = 0;
  // Tiers below it. 0 bytes, no directory: without.
  uint64_t kv_host_memory_bytes = 0;
  std::string kv_disk;  // shared by workers; each has a folder of its name
  uint64_t kv_disk_bytes = 0;
  // To be offered, none: shared memory and TCP.
  std::vector<TransportKind> transports;
  std::string data_listen = "127.0.0.1:0";  // of the TCP transport
  std::string data_advertised_host;         // empty: the one listened on
  EngineOptions engine;
  HandoffOptions handoff;
};

// One worker of this process without its edge: model, arena, backend,
// transports and WorkerCore, run by a loop thread. Owned by main (through
// common/worker/rpc) or by `up` when everything is in one process.
//
// The loop is given because the control plane posts to it too; it must not be
// started before Create and must be stopped before the host dies.
class WorkerHost {
 public:
  struct Ports {
    LoopThread* loop = nullptr;
    PeerNetwork* peers = nullptr;           // null: this worker is alone
    EngineProbe* engine_probe = nullptr;    // null: not measured
    HandoffProbe* handoff_probe = nullptr;  // null: not measured
    // Makes a tier below all others; empty: none. The tier must be at rest
    // until the loop polls it.
    std::function<absl::StatusOr<std::unique_ptr<KvTier>>(const TierWorker&)>
        make_last_tier = {};
  };

  // Loads the model (seconds) and takes the memory. Errors name the option:
  // what OpenModelFile says, RESOURCE_EXHAUSTED for memory, UNIMPLEMENTED for a
  // backend that this machine cannot run, UNAVAILABLE for a taken address.
  static absl::StatusOr<std::unique_ptr<WorkerHost>> Create(
      WorkerHostOptions options, const Ports& ports);
  ~WorkerHost();

  // The loop's tick: to be passed to LoopThread::Start.
  void Tick();

  // On the loop's thread only.
  WorkerCore& core() { return *core_; }

  const WorkerKey& self() const { return options_.self; }
  const ModelFile& model() const { return *model_; }
  const std::string& model_name() const { return options_.model_name; }
  const Backend& backend() const { return *backend_; }
  int total_blocks() const { return total_blocks_; }

 private:
  explicit WorkerHost(WorkerHostOptions options);
  absl::Status Load(const Ports& ports);
  absl::Status CheckPrecision() const;
  absl::StatusOr<KvType> ChooseKvType() const;
  absl::Status MakeArena(KvType type);
  absl::Status MakeBackend(KvType type, std::function<void()> wake);
  absl::Status MakeTransports(const Clock* clock, std::function<void()> wake);
  absl::Status MakeTiers(const Ports& ports, std::function<void()> wake);
  absl::Status MakeCore(const Ports& ports);

  WorkerHostOptions options_;
  HashSecret secret_;
  BlockHasher hasher_;
  std::unique_ptr<ModelFile> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ArenaMemory> memory_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<KvTransport>> transports_;
  std::unique_ptr<KvTier> tier_;       // null: none
  std::unique_ptr<CoreLedger> cores_;  // null: not shared
  std::unique_ptr<WorkerCore> core_;
  int total_blocks_ = 0;
};

}  // namespace penstock
