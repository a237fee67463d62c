#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/peer/peer.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

struct WorkerRoles {
  bool prefill = false;
  bool decode = false;
};

// What a worker tells every router once, at Register.
struct WorkerInfo {
  WorkerKey key;
  WorkerRoles roles;
  std::string control_address;  // advertised "host:port" of its gRPC services
  std::string model;            // served model name
  ContentId content;
  LayoutId layout;
  NumericsId numerics;
  int context_length = 0;
  int total_blocks = 0;
  int max_sequences = 0;
  // How others may write into this worker's arena (decode), and what this
  // worker can write with (prefill).
  std::vector<TransportKind> transports;
};

enum class WorkerHealth { kLoading, kReady, kDraining, kFailed };

// Seconds that a worker's steps take, as measured: any step, and for each of
// its rows, of its pairs of a row and a position before it (attention), and of
// its rows that are sampled. All zero: not known yet.
struct StepCosts {
  double step = 0;
  double row = 0;
  double pair = 0;
  double sample = 0;

  friend bool operator==(const StepCosts&, const StepCosts&) = default;
};

// Heartbeat, each 500 ms and at once on a change of health.
struct WorkerLoad {
  WorkerHealth health = WorkerHealth::kLoading;
  int queued_requests = 0;
  int active_requests = 0;
  int queued_tokens = 0;  // uncached prompt tokens not yet computed
  int free_blocks = 0;    // free or evictable
  int total_blocks = 0;
  absl::Duration step_time;  // recent, smoothed
  StepCosts costs = {};
};

// Prefix cache changes, sequenced per incarnation from 1 without gaps.
struct BlocksStored {
  // None (0) when the chain starts at its scope's root: whoever indexes blocks
  // knows no roots, and refuses a parent that was never stored.
  BlockHash parent;
  std::vector<BlockHash> hashes;  // a chain below parent
};
struct BlocksRemoved {
  std::vector<BlockHash> hashes;
};
struct CacheCleared {};

struct CacheEvent {
  uint64_t sequence = 0;
  std::variant<BlocksStored, BlocksRemoved, CacheCleared> change;
};

// Everything that is cached after the event `sequence`: chains, parents first.
// For a receiver whose missing events are no longer kept.
struct CacheSnapshot {
  uint64_t sequence = 0;
  std::vector<BlocksStored> chains;
};

}  // namespace penstock
