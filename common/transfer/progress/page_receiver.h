#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/kv_transport.h"
#include "common/transfer/page_header.h"
#include "common/transfer/progress/transport_options.h"
#include "common/transfer/progress/wake_bell.h"
#include "common/transfer/receive_ledger.h"

namespace penstock {

// The destination half of a transport, the same for all: admits pages to the
// arena, verifies them where they landed, reports them, fences transfers.
// Owned by the transport. Thread-safe; the lock is not held while bytes move.
class PageReceiver {
 public:
  // `options` and `bell` outlive the receiver.
  PageReceiver(const TransportOptions& options, WakeBell* bell);

  // The engine's side; see KvTransport. Blocks must lie in the arena (CHECK).
  void Prepare(TransferId transfer, const std::vector<BlockRef>& blocks);
  bool Revoke(TransferId transfer);
  void Drop(const WorkerKey& source);
  std::optional<PageArrival> PollArrival();

  // The progress side. A page goes through Begin, then its bytes are put into
  // Target, then Finish or Abandon, exactly once.

  const WorkerKey& self() const { return options_.self; }
  const KvLayout& layout() const { return pages_.layout(); }
  const BlockHasher& hasher() const { return options_.hasher; }
  bool dropped(const WorkerKey& source) const;

  // OK: a landing began. Else the refusal, which is reported already.
  // A landing begins between `Now` and this.
  absl::Status Begin(const WorkerKey& source, const PageHeader& header,
                     ReceiveChannel& channel);
  Instant Now() const { return options_.clock->Now(); }
  std::vector<absl::Span<uint8_t>> Target(const PageHeader& header) const;
  // Verifies and reports the page, whose bytes began to come at `began`; the
  // verdict is what the source is told.
  absl::Status Finish(const WorkerKey& source, const PageHeader& header,
                      Instant began);
  // The rest of the page will never come; reports what was done to it.
  void Abandon(const PageHeader& header, Instant began);
  // Is a landing of this transfer one that a Revoke waits for?
  bool revoking(TransferId transfer) const;

 private:
  // What was written to a page.
  struct Landing {
    uint64_t checksum = 0;
    Instant began;
    Instant ended;
  };
  Landing Look(const PageHeader& header, Instant began) const;

  // Reports go out under the lock; those of pages that were not written only as
  // long as the engine keeps up, so that a peer that errs cannot fill the
  // memory.
  void Report(const PageHeader& header, const std::optional<Landing>& landing,
              absl::Status status);

  const TransportOptions& options_;
  WakeBell* const bell_;
  const ArenaPages pages_;

  mutable std::mutex mutex_;
  ReceiveLedger ledger_;              // guarded by mutex_
  std::set<WorkerKey> dropped_;       // guarded by mutex_
  std::deque<PageArrival> arrivals_;  // guarded by mutex_
};

}  // namespace penstock
