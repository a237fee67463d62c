#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/env/real/monotonic_clock.h"
#include "common/env/timers.h"
#include "common/model/files/model_file.h"
#include "common/model/text/tokenizer.h"
#include "common/peer/leg.h"
#include "common/peer/peer.h"
#include "common/transfer/arena/arena_memory.h"
#include "common/transfer/page_faults.h"
#include "common/worker/core/worker_core.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// How the workers of a LocalCluster exchange KV.
enum class Handoff {
  kNone,    // one decode worker that prefills by itself
  kShared,  // one worker with both roles: by reference
  kInproc,  // two workers, each over its own arena
  kShm,
  kTcp,
  kShmOrTcp,  // both; shared memory is the better one
};

struct LocalClusterOptions {
  const ModelFile* model = nullptr;
  Handoff handoff = Handoff::kNone;
  int blocks = 256;               // of each worker
  KvType kv_type = KvType::kF16;  // blocks are at least as large as this makes
  EngineOptions engine;
  // Makes each worker's backend over its arena; `wake` may come from any
  // thread.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(
      Arena arena, std::function<void()> wake)>
      backend;
  // Makes the tier below each worker's pool; null: none.
  std::function<std::unique_ptr<KvTier>(const WorkerKey&, TierWorker,
                                        const Clock*)>
      tier;
  // Of the receiving and the sending side, on the better transport.
  PageFaults* faults = nullptr;
  EngineProbe* engine_probe = nullptr;    // of the decode worker
  HandoffProbe* handoff_probe = nullptr;  // of the decode worker
};

// What a request gave, both legs together.
struct LocalResult {
  struct Answer {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs;
    FinishReason finish = FinishReason::kNone;
  };
  std::vector<Answer> answers;  // as many as were asked
  std::vector<TokenId> tokens;  // of the first answer
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt;  // from the second token on
  Usage usage;
  TransferSummary transfer;
  absl::Status status;
};

// Production worker cores with real backends and real transports, their engine
// loops run by the calling thread. One process; messages between workers are
// handed over directly.
class LocalCluster {
 public:
  explicit LocalCluster(LocalClusterOptions options);
  ~LocalCluster();

  // Serves all requests at once and returns their results in order. Dies when
  // that takes longer than two minutes.
  std::vector<LocalResult> Serve(const std::vector<GenerateRequest>& requests);

  WorkerCore& prefill() { return *hosts_.front()->core; }
  WorkerCore& decode() { return *hosts_.back()->core; }
  // Since the last Serve began: the most blocks that decode used at once,
  // cached ones not counted, and the bytes of all request states handed off.
  int peak_blocks() const { return peak_blocks_; }
  uint64_t state_bytes() const { return state_bytes_; }
  const KvLayout& layout() const { return hosts_.back()->backend->kv_layout(); }

 private:
  class Peers;
  class Sink;
  struct Doorbell;
  struct Host {
    WorkerKey key;
    std::unique_ptr<ArenaMemory> memory;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<KvTier> tier;
    std::vector<std::unique_ptr<KvTransport>> transports;
    std::unique_ptr<Peers> peers;
    std::unique_ptr<WorkerCore> core;
  };

  std::unique_ptr<Host> MakeHost(const std::string& name, WorkerRoles roles);
  // Best first.
  std::vector<std::unique_ptr<KvTransport>> MakeTransports(const Host& host);
  bool DeliverMail();
  void Pump(const std::function<bool()>& done);

  LocalClusterOptions options_;
  MonotonicClock clock_;
  Timers timers_;
  HashSecret secret_{"local cluster"};
  BlockHasher hasher_{secret_};
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Doorbell> doorbell_;
  std::deque<std::function<void()>> mail_;
  std::vector<std::unique_ptr<Host>> hosts_;
  uint64_t next_request_ = 1;
  int peak_blocks_ = 0;
  uint64_t state_bytes_ = 0;
};

}  // namespace penstock
