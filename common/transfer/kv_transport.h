#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/model/block_ref.h"
#include "common/model/kv_layout.h"
#include "kernels/api/arena.h"

namespace penstock {

enum class TransportKind { kInproc, kShm, kTcp };

// "inproc", "shm", "tcp": the names used by flags, metrics and frames.
const char* TransportName(TransportKind kind);
absl::StatusOr<TransportKind> ParseTransport(absl::string_view name);

// What a transport can do; the conformance suite tests what is claimed.
struct TransportCaps {
  TransportKind kind = TransportKind::kInproc;
  // The receiver checks generation and checksum of every page before it counts
  // (TCP, shm). False: late writes must be fenced some other way.
  bool receiver_validates = false;
  // Higher is preferred when both sides share several.
  int preference = 0;
};

// How to reach a worker's arena, made by Describe and carried by the control
// plane. Opaque to everything but the transport of the same kind.
struct TransportAddress {
  TransportKind kind = TransportKind::kInproc;
  std::string address;      // "127.0.0.1:4711", an abstract socket's name, ...
  Incarnation incarnation;  // of the worker that listens
  uint64_t access_key = 0;  // authorises data connections; control plane only
};

// One page write: some layers of one block, from the local arena into a block
// that the destination granted.
struct PageWrite {
  BlockIndex source = -1;
  BlockRef destination;
  LayerRange layers;
};

// What the receiver verifies about an arriving page, and reports per write.
struct PageArrival {
  TransferId transfer;
  BlockRef block;
  LayerRange layers;
  uint64_t bytes = 0;
  // Bytes were written, whatever the status says: the page is not what it was.
  bool landed = false;
  uint64_t checksum = 0;  // if landed: of the bytes as they then lay there
  // OK, or why the page was refused (stale generation, wrong checksum, wrong
  // incarnation, not prepared): nothing of it is usable.
  absl::Status status;
  // If landed: all of it was written between these, of the worker's clock. Of
  // landings on several transports, only one that began after another ended is
  // known to lie on top.
  Instant began = {};
  Instant ended = {};
};

using PostId = uint64_t;

// Exactly one for each Post, failures included. After it the source blocks are
// no longer read.
struct PostCompletion {
  PostId post = 0;
  TransferId transfer;
  absl::Status status;
  uint64_t bytes = 0;
  // XXH3-64 of each write's payload, in the order of the writes.
  std::vector<uint64_t> checksums;
};

// Moves KV pages between workers' arenas. One instance per worker and kind.
// Owned by the worker host. All methods are called from the engine thread and
// never block; `wake` (given at construction) is called from any thread when
// a Poll has something new. Progress does not depend on the engine thread.
class KvTransport {
 public:
  virtual ~KvTransport() = default;

  virtual const TransportCaps& caps() const = 0;

  // How a peer reaches this worker's arena.
  virtual TransportAddress Describe() const = 0;

  // Starts connecting to a peer; done when a Post succeeds or fails. Idempotent
  // for equal addresses. FAILED_PRECONDITION when the address is of another
  // kind or of an incarnation that DropPeer revoked.
  virtual absl::Status Connect(const WorkerKey& peer,
                               const TransportAddress& address) = 0;

  // Destination side: opens the given blocks to writes of `transfer`, until
  // Revoke. They may be open to the same transfer on other transports, too. A
  // write that is not prepared is refused. Precondition: the blocks are in
  // transfer and stay so until the fence of Revoke has completed.
  virtual void PrepareReceive(TransferId transfer,
                              const std::vector<BlockRef>& blocks) = 0;

  // Destination side: after this returns true no write of the transfer can
  // land any more, ever (a fence); false: the fence is still in progress, ask
  // again after the next wake.
  virtual bool Revoke(TransferId transfer) = 0;

  // Source side: writes pages. The source blocks stay untouched until the
  // completion. Precondition: Connect(peer) was called.
  virtual PostId Post(const WorkerKey& peer, TransferId transfer,
                      std::vector<PageWrite> writes, Instant deadline) = 0;

  // Source side: gives up on a post; its completion still comes (CANCELLED or
  // the real outcome) and only then may source blocks be reused.
  virtual void Cancel(PostId post) = 0;

  // Forgets a peer: its connections close, outstanding posts complete with
  // UNAVAILABLE, nothing that its incarnation sends is accepted any more.
  virtual void DropPeer(const WorkerKey& peer) = 0;

  virtual std::optional<PostCompletion> PollCompletion() = 0;
  virtual std::optional<PageArrival> PollArrival() = 0;
};

}  // namespace penstock
