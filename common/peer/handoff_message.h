#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/model/block_ref.h"
#include "common/model/kv_layout.h"
#include "common/model/kv_manifest.h"
#include "common/transfer/kv_transport.h"

namespace penstock {

// Control messages between a prefill (P) and a decode (D) worker, and between a
// worker that has pages in its cache (D, too: it was dialled) and one that
// pulls them (P). All are idempotent: each carries its transfer, and a repeated
// one changes nothing.

// P -> D: asks for room for a prompt, and what the client has of its one answer
// (LegRequest::history). "Prompt blocks" below are those of both.
struct Offer {
  TransferId transfer;
  LayoutId layout;
  ContentId content;
  NumericsId numerics;
  int prompt_tokens = 0;
  std::vector<BlockHash> block_hashes;    // of the prompt's full blocks
  std::vector<TransportKind> transports;  // that P can use, best first
};

// D -> P: room is reserved under a lease. `have_blocks`: leading full blocks
// that D already holds and that need not travel.
struct Credit {
  TransferId transfer;
  int have_blocks = 0;
  // Every transport over which D takes this transfer's pages, best first; none
  // when both roles are one worker's.
  std::vector<TransportAddress> addresses;
  absl::Duration lease;  // from receipt, on the receiver's clock
};

// D -> P: not now (retry_after > 0) or not at all (code says why).
struct Reject {
  TransferId transfer;
  absl::StatusCode code = absl::StatusCode::kResourceExhausted;
  std::string message;
  absl::Duration retry_after;
};

// D -> P: blocks that P may write, for prompt blocks [first_prompt_block, ...).
struct Grant {
  TransferId transfer;
  int chunk = 0;
  int first_prompt_block = 0;
  std::vector<BlockRef> blocks;
};

// P -> D: the pages of a chunk are written (by reference in one process: then
// `shared` names the source blocks instead).
struct ChunkDone {
  TransferId transfer;
  int chunk = 0;
  int first_prompt_block = 0;
  std::vector<uint64_t> checksums;  // one for each block of the chunk
  std::vector<BlockRef> shared;
};

// D -> P: a chunk did not arrive as announced; it has to be sent again.
struct ChunkNack {
  TransferId transfer;
  int chunk = 0;
  std::string reason;
};

// P -> D: everything is there; `manifest` says what everything is.
struct Commit {
  TransferId transfer;
  KvManifest manifest;
};

// D -> P: verified and owned by D; P may let go.
struct CommitAck {
  TransferId transfer;
};

// Either way: the sender is alive and still wants this transfer.
struct Renew {
  TransferId transfer;
  absl::Duration lease;
};

// Either way: the transfer is over. P stops writing and answers FenceAck once
// no write of its own can land any more.
struct Abort {
  TransferId transfer;
  absl::StatusCode code = absl::StatusCode::kCancelled;
  std::string reason;
};

// P -> D: all of P's posts of this transfer have completed.
struct FenceAck {
  TransferId transfer;
};

// P -> D: asks for pages of D's cache, to be written into blocks that are open
// to this transfer. Renounced by Abort.
struct PullAsk {
  struct Page {
    BlockHash hash;  // of these tokens behind those of the parent
    BlockHash parent;
    std::array<TokenId, kBlockTokens> tokens = {};
    BlockRef into;
  };
  TransferId transfer;
  LayoutId layout;
  ContentId content;
  NumericsId numerics;
  std::vector<Page> pages;
  std::vector<TransportAddress> addresses;  // of P, best first
};

// D -> P: so many of the first pages are written; the others will not be.
struct PullDone {
  TransferId transfer;
  std::vector<uint64_t> checksums;
};

// Pulls have transfers of their own: their puller numbers them.
inline constexpr AttemptId kPullAttempt{0xffffffff};
inline bool IsPull(TransferId transfer) {
  return transfer.attempt == kPullAttempt;
}

using HandoffMessage =
    std::variant<Offer, Credit, Reject, Grant, ChunkDone, ChunkNack, Commit,
                 CommitAck, Renew, Abort, FenceAck, PullAsk, PullDone>;

TransferId TransferOf(const HandoffMessage& message);

// Which worker of a pair says such a message.
enum class HandoffSender { kPrefill, kDecode, kEither };
HandoffSender SenderOf(const HandoffMessage& message);

const char* MessageName(const HandoffMessage& message);

}  // namespace penstock
