#pragma once

#include <map>
#include <utility>
#include <vector>

#include "common/engine/worker_context.h"
#include "common/peer/handoff_message.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/core/block_census.h"
#include "kvstore/core/block_pool.h"
#include "prefill_worker/core/push_routes.h"

namespace penstock {

// Writes pages of this worker's cache to workers that pull them (PullTier). A
// page that is being read is pinned, for as long as its post may take.
// Single-threaded, the engine thread's; the context outlives it.
class PullSource {
 public:
  // Pulls that are served at a time; others hear that nothing comes.
  static constexpr size_t kMostPulls = 64;

  explicit PullSource(const WorkerContext* context);

  void OnAsk(const WorkerKey& peer, const PullAsk& ask);
  // The puller wants no more of it.
  void OnAbort(const WorkerKey& peer, TransferId transfer);
  void OnPeerLost(const WorkerKey& peer);
  void OnCompletion(KvTransport* transport, const PostCompletion& completion);

  void CountBlocks(BlockCensus& census) const;
  bool idle() const { return sendings_.empty(); }

 private:
  using Key = std::pair<WorkerKey, TransferId>;
  struct Sending {
    std::vector<BlockHold> holds;
    std::vector<TransferPin> pins;
    std::vector<PageWrite> writes;
    PushRoutes routes;
    KvTransport* transport = nullptr;  // of the post under way
    PostId post = 0;
    int tries = 0;
    bool renounced = false;
  };

  bool IsOurs(const PullAsk& ask) const;
  void Post(const Key& key, Sending& sending);
  void Renounce(Sending& sending);

  const WorkerContext* context_;
  std::map<Key, Sending> sendings_;
  std::map<std::pair<const KvTransport*, PostId>, Key> posts_;
};

}  // namespace penstock
