#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/block_hash.h"
#include "common/model/block_ref.h"
#include "common/model/kv_layout.h"
#include "common/transfer/arena_pages.h"

namespace penstock {

// What a page is the KV of: one full block at its place in a chain. Equal keys
// in one TierIdentity mean equal bytes.
struct TierKey {
  BlockHash hash;    // BlockHasher::Next(parent, tokens)
  BlockHash parent;  // of the block before it; the chain's root for the first
  std::array<TokenId, kBlockTokens> tokens = {};

  friend bool operator==(const TierKey&, const TierKey&) = default;
};

// Whose pages may be taken for one's own, byte for byte. Part of every stored
// page, of a disk tier's files and of what a remote one is asked for.
struct TierIdentity {
  LayoutId layout;
  ContentId content;
  NumericsId numerics;

  friend bool operator==(const TierIdentity&, const TierIdentity&) = default;
};

// What every tier is made with: the worker whose pages it takes and gives.
struct TierWorker {
  TierIdentity identity;
  ArenaPages pages;
  BlockHasher hasher;
  // Called from any thread when Poll has something new or Lookup may know more.
  std::function<void()> wake;
};

using TierTicket = uint64_t;

// What a tier holds of a chain.
struct TierLookup {
  int blocks = 0;  // leading blocks of the chain
  // Predicted for fetching them with what is under way: so long until the first
  // page comes, and so long for each.
  absl::Duration wait;
  absl::Duration each;
  // The tier has to ask somebody and does so now; it wakes when it knows.
  bool asking = false;
};

// One page that a fetch brings.
struct TierRead {
  TierKey key;
  BlockRef into;
};

enum class TierStoreVerdict {
  kTaken,  // a ticket was given
  kHeld,   // the tier has the page already
  kNotWorthIt,
  kBusy,  // too much is under way: try again after a completion
};

struct TierStored {
  TierStoreVerdict verdict = TierStoreVerdict::kNotWorthIt;
  TierTicket ticket = 0;  // with kTaken
};

// The end of one page of a ticket: exactly one for each, in any order.
struct TierCompletion {
  TierTicket ticket = 0;
  int page = 0;  // index among the fetch's reads; 0 for a store
  // Of a fetch:
  //   OK           the page lies in its block, and was verified there;
  //   NOT_FOUND    the tier does not hold it (any more);
  //   DATA_LOSS    what the tier held is not what was asked for: bad bytes, or
  //                another block's. The tier forgets it;
  //   CANCELLED    the fetch was cancelled first;
  //   UNAVAILABLE  the tier cannot be read now.
  // After all but OK the block holds anything.
  // Of a store: OK: later lookups may find it; else they will not.
  absl::Status status;
};

// A place for KV pages below a worker's pool: host memory, disk, a service, a
// peer. Pages are named by block hash and move between it and blocks of the
// worker's arena; it never sees sequences.
//
// Integrity is the tier's: a completion is OK only when the bytes, as they lie
// in the block, have the checksum that was taken when they were stored, and
// the page was stored for an equal key and identity (see page_label.h). A
// torn, flipped, stale or foreign page is a DATA_LOSS, never an OK.
//
// One instance per worker, owned by its host. All methods are called from the
// engine thread and never block on anything outside the process; the tier has
// threads and clocks of its own if it needs any. A completion may be late but
// always comes: the tier bounds by itself how long it waits for anybody. When
// the tier is destroyed, its blocks are no longer touched.
class KvTier {
 public:
  virtual ~KvTier() = default;

  // How many leading blocks of `chain` are held. A hint: pages come and go. It
  // counts as a use of those.
  virtual TierLookup Lookup(absl::Span<const BlockHash> chain) = 0;

  // Brings pages into blocks, in this order as far as it can. From here to the
  // completion of each, its block is the tier's alone to write. Precondition:
  // `reads` is not empty, its blocks differ, are of the arena and stay in
  // transfer until their completions have been polled.
  virtual TierTicket Fetch(std::vector<TierRead> reads) = 0;

  // Offers the page of `key`, which lies in `from`. `recompute`: what the page
  // saves when it is found. When it is taken, the block is read until the
  // completion. Precondition: key.hash is as in TierKey; nobody writes to the
  // block, which stays in transfer until the completion has been polled.
  virtual TierStored Store(const TierKey& key, BlockRef from,
                           absl::Duration recompute) = 0;

  // Gives up on what is left of a fetch: the pages' completions still come,
  // soon (CANCELLED or the real outcome), and only then may the blocks be
  // reused. Tickets that have ended are a no-op.
  virtual void Cancel(TierTicket fetch) = 0;

  // The next completion; nullopt: none now. Never from inside another call.
  virtual std::optional<TierCompletion> Poll() = 0;
};

}  // namespace penstock
