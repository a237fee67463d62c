#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/model/block_ref.h"
#include "common/model/kv_layout.h"
#include "common/transfer/kv_transport.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// What a worker and the shared KV store tell each other over one stream, in
// order. Pages go beside it, over a KvTransport that both have.

// Worker -> store. The hello comes first and once; ids are the worker's, rise,
// and name an answer.

struct StoreHello {
  WorkerKey worker;
  KvLayout layout;
  ContentId content;
  NumericsId numerics;
  // Where the store's pages come in, best first.
  std::vector<TransportAddress> addresses;
};

// How many leading blocks are held: Found answers.
struct StoreLookup {
  uint64_t id = 0;
  std::vector<BlockHash> chain;
};

// A page, to be written to a block that is open to the transfer GetTransfer(id):
// Got answers when it was, or will not be.
struct StoreGet {
  uint64_t id = 0;
  TierKey key;
  BlockRef into;
};

inline TransferId GetTransfer(uint64_t id) {
  return {RequestId(id), AttemptId(1)};
}

// A page is offered: Granted answers.
struct StorePut {
  uint64_t id = 0;
  TierKey key;
  absl::Duration recompute;
};

// The granted page will not come.
struct StoreGiveUp {
  uint64_t put = 0;
};

using StoreRequest =
    std::variant<StoreHello, StoreLookup, StoreGet, StorePut, StoreGiveUp>;

// Store -> worker.

struct StoreWelcome {
  WorkerKey store;
  std::vector<TransportAddress> addresses;  // best first
};

struct StoreFound {
  uint64_t id = 0;
  int blocks = 0;
};

struct StoreGot {
  uint64_t id = 0;
  // OK, NOT_FOUND, DATA_LOSS or UNAVAILABLE.
  absl::StatusCode code = absl::StatusCode::kOk;
  // If OK: what the store holds the page to be.
  TierKey key;
  uint64_t checksum = 0;
};

struct StoreGranted {
  uint64_t id = 0;
  // kTaken: write the page to this block, as this transfer.
  TierStoreVerdict verdict = TierStoreVerdict::kNotWorthIt;
  TransferId transfer;
  BlockRef block;
};

using StoreReply =
    std::variant<StoreWelcome, StoreFound, StoreGot, StoreGranted>;

}  // namespace penstock
