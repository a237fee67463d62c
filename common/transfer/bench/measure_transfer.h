#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/model/kv_layout.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

struct TransferBench {
  TransportKind kind = TransportKind::kInproc;
  KvLayout layout;
  int blocks = 64;   // in each arena, all written by one post
  int repeats = 20;  // posts whose rate is taken
  int pings = 200;   // posts of one layer, one after the other
};

struct TransferFigures {
  uint64_t bytes = 0;             // moved by the posts whose rate is taken
  double bytes_per_second = 0;    // over all of them, checksums included
  absl::Duration median_latency;  // of one layer: post to completion
};

// Moves pages between two arenas of this process over one kind of transport,
// on loopback. Blocks the caller; uses the transports' own threads. The status
// of the first post that fails, if one does.
absl::StatusOr<TransferFigures> MeasureTransfer(const TransferBench& bench);

}  // namespace penstock
