#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/id.h"
#include "common/model/block_ref.h"
#include "common/transfer/page_header.h"

namespace penstock {

// How far one incoming connection has come; owned by whoever owns the
// connection. Sequences start at 1 and only rise.
struct ReceiveChannel {
  uint64_t last_sequence = 0;
};

// The destination's table of blocks opened to writes, and of the writes that
// are landing right now: decides whether a page may land, and makes Revoke a
// true fence. Single-threaded: a transport guards it with its own lock, which
// it need not hold while bytes move between BeginLanding and EndLanding.
class ReceiveLedger {
 public:
  explicit ReceiveLedger(Incarnation self) : self_(self) {}

  // Opens blocks to writes of `transfer`; repeating a block is harmless.
  // Precondition: the transfer was not revoked, and each block's index is open
  // to no other transfer or generation (CHECK).
  void Prepare(TransferId transfer, const std::vector<BlockRef>& blocks);

  // Closes the transfer to new landings at once. True: none is in progress, so
  // no write can land any more; false: ask again after EndLanding said so.
  // Unknown transfers are fenced already.
  bool Revoke(TransferId transfer);

  // May this page land? Nothing: yes, and a landing began that EndLanding must
  // end, once. Else kWrongIncarnation, kReplayedSequence, kNotPrepared or
  // kStaleGeneration. Precondition: CheckPageHeader passed.
  std::optional<PageRefusal> BeginLanding(const PageHeader& header,
                                          ReceiveChannel& channel);

  struct LandingEnd {
    bool revoked = false;  // meanwhile: the page must not count
    bool fenced = false;   // it was the last one that Revoke waited for
  };
  LandingEnd EndLanding(TransferId transfer);

  // A landing of this transfer is worth abandoning.
  bool revoking(TransferId transfer) const;

  size_t open_transfers() const { return transfers_.size(); }

 private:
  struct Entry {
    std::map<BlockIndex, uint32_t> generations;
    int landings = 0;
    bool revoking = false;
  };
  using Transfers = std::map<TransferId, Entry>;

  void Forget(Transfers::iterator at);

  const Incarnation self_;
  Transfers transfers_;
  // Every open block has one owner; blocks that a pending fence still guards
  // count as open.
  std::map<BlockIndex, TransferId> owners_;
};

}  // namespace penstock
